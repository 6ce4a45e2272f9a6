//! Tests that no other transaction waits for a caller that enqueues into a limited group and keeps its transaction open.

use std::sync::Arc;

use milepost_core::error::StoreError;
use milepost_core::finish::End;
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::{LimitStore, StoreResult};
use milepost_core::precedence::Put;
use milepost_core::state::JobState;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::{Scene, wait};
use sqlx::Connection;

#[tokio::test]
async fn starts_of_a_group_are_debited_as_if_each_were_debited_when_it_happened() {
    let (_database, store) = Database::with_store().await;
    let second = 1_000_000;
    for (per_second, full_at_us, known_us, starts) in [
        (20.0, -second, vec![-40_000, -30_000], 2),
        (20.0, -second, vec![-400_000, -30_000], 2),
        (20.0, 70_000, vec![-400_000, -30_000], 3),
        (3.0, -10, vec![], 2),
        (3.0, -second, vec![-second, -900_000, -second / 2, -1], 4),
        (3.0, -second, vec![-second, -900_000, -second / 2, -1], 2),
        (3.0, 5 * second, vec![-second], 0),
    ] {
        let rate = Rate::new(per_second, 1);
        let known = known_us.iter().copied().take(starts);
        let happened: Vec<i64> = known.chain(std::iter::repeat(0)).take(starts).collect();
        let expected =
            happened.iter().fold(full_at_us, |full_at_us, &at_us| rate.debit(full_at_us, at_us, 1));
        let full_at_us: i64 = sqlx::query_scalar(
            "select round(extract(epoch from milepost.debited(now() + $1 * interval '1 microsecond', $2, $3,
                 array(select now() + a * interval '1 microsecond' from unnest($4) a order by a)) - now()) * 1000000)::bigint",
        )
        .bind(full_at_us)
        .bind(i32::try_from(starts).unwrap())
        .bind(per_second)
        .bind(&known_us)
        .fetch_one(store.pool())
        .await
        .unwrap();
        assert!((full_at_us - expected).abs() <= 4, "{full_at_us} instead of {expected}: {known_us:?}");
    }
}

async fn put(store: &PostgresStore, limit: Limit) -> StoreResult<Put> {
    store.put_limit(&limit, Source::Operator).await
}

fn grouped() -> NewJob {
    Scene::job().group("t:1")
}

/// Runs an operation that must not wait for the caller's open transaction.
async fn at_once<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(wait::LIMIT, what).await.expect("it does not wait for the open transaction")
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_and_enqueues_do_not_wait_for_an_open_enqueue_and_a_limit_is_not_lowered_meanwhile() {
    let (database, store) = Database::with_store().await;
    let scene = Scene::on(Arc::new(store.clone())).await;
    let slots = |slots| put(&store, Limit::group("t:*").slots(slots));
    slots(2).await.unwrap();
    let holder = scene.running(grouped()).await;

    let mut caller = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = caller.begin().await.unwrap();
    let open = milepost_postgres::enqueue(&mut tx, &grouped()).await.unwrap().job;
    let next = at_once(scene.enqueue(grouped())).await;
    assert_eq!(scene.state(next).await, JobState::Blocked, "the open transaction reserves the second slot");
    at_once(scene.finish(&holder, End::Succeed { result: None })).await;
    assert_eq!(scene.state(next).await, JobState::Pending, "the first slot is passed on nevertheless");

    let refused = at_once(slots(1)).await;
    assert!(matches!(refused, Err(StoreError::Held { .. })), "{refused:?}");
    at_once(slots(3)).await.unwrap();
    at_once(slots(2)).await.unwrap_err();
    tx.commit().await.unwrap();
    slots(1).await.unwrap();
    assert_eq!(scene.state(open).await, JobState::Pending);
    assert_eq!(store.limits().await.unwrap()[0].holders, 2, "both holders keep their slots until they end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_a_rate_goes_on_while_an_enqueue_into_it_is_open() {
    let (database, store) = Database::with_store().await;
    let scene = Scene::on(Arc::new(store.clone())).await;
    put(&store, Limit::group("t:*").slots(5).rate(Rate::new(1.0, 10))).await.unwrap();
    let mut caller = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = caller.begin().await.unwrap();
    let open = milepost_postgres::enqueue(&mut tx, &grouped()).await.unwrap().job;
    for _ in 0..2 {
        let job = at_once(scene.enqueue(grouped())).await;
        at_once(scene.store.fill_groups()).await.unwrap();
        assert_eq!(scene.state(job).await, JobState::Pending);
    }
    tx.commit().await.unwrap();
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(open).await, JobState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_which_no_group_waits_is_not_looked_at_again() {
    let (_database, store) = Database::with_store().await;
    let scene = Scene::on(Arc::new(store.clone())).await;
    put(&store, Limit::group("t:*").rate(Rate::new(0.001, 1))).await.unwrap();
    let again_ms = || async {
        sqlx::query_scalar::<_, Option<i64>>("select milepost.pace()").fetch_one(store.pool()).await.unwrap()
    };
    assert_eq!(again_ms().await, None);
    for _ in 0..2 {
        scene.enqueue(grouped()).await;
    }
    assert_eq!(again_ms().await, None, "the claim of the first job is noted");
    assert_eq!(scene.claim(10).await.len(), 1);
    assert!(again_ms().await > Some(100_000), "the second job waits minutes for a token");
}
