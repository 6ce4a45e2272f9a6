//! Rollups of long ago.

use std::time::Duration;

use milepost_core::port::RollupStore;
use milepost_core::rollup::{Range, RollupFilter};

use crate::store::fixture::Home;

#[tokio::test]
async fn periods_get_longer_as_they_get_older_and_end() {
    let home = Home::new().await;
    let old = "INSERT INTO milepost_rollup (step_s, starts_at_s, queue, kind, verb, bucket, times)
               SELECT 60, (unixepoch() - ago.value) / 600 * 600 + minute.value * 60, 'q', 'k', 'claim', 3, 5
               FROM json_each('[3600, 18000, 259200, 3456000, -172800]') ago, json_each('[1, 2]') minute";
    home.connection().execute(old, ()).unwrap();
    assert!(home.store.roll_up(Duration::ZERO).await.unwrap());
    let connection = home.connection();
    let mut left = connection
        .prepare("SELECT step_s, sum(times), count(*) FROM milepost_rollup GROUP BY 1 ORDER BY 1")
        .unwrap();
    let left = left.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let left: Vec<(i64, i64, i64)> = left.collect::<Result<_, _>>().unwrap();
    assert_eq!(
        left,
        [(60, 10, 2), (600, 10, 1), (3600, 10, 1)],
        "those of 40 days ago and of the future are deleted"
    );
    let of = async |range| {
        let filter = RollupFilter { range, ..RollupFilter::default() };
        home.store.rollups(&filter).await.unwrap().counts.iter().map(|count| count.times).sum::<u64>()
    };
    assert_eq!((of(Range::Day).await, of(Range::Week).await), (20, 30));
}
