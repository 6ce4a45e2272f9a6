//! Uniqueness of keys: at most one job owns a key.

use milepost_core::port::{AdminStore, IntakeStore};
use milepost_core::state::JobState;

use crate::store::fixture::{Home, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_file_that_race_for_keys_make_one_job_each() {
    let home = Home::new().await;
    let stores = [home.store.clone(), home.neighbour()];
    let racers = stores.map(|store| {
        tokio::spawn(async move {
            let mut won = 0;
            for n in 0..200 {
                let jobs = [job("a").key(format!("k{n}"))];
                won += usize::from(!store.enqueue_many(&jobs).await.unwrap()[0].duplicate);
            }
            won
        })
    });
    let mut won = 0;
    for racer in racers {
        won += racer.await.unwrap();
    }
    assert_eq!(won, 200);
    assert_eq!(home.store.count_by_state().await.unwrap(), [(JobState::Pending, 200)]);
}
