//! Enqueues with rules for duplicates, and edits, on PostgreSQL: in callers' transactions, beside retention, and over connections that break.

use std::time::Duration;

use milepost_core::finish::End;
use milepost_core::job::duplicate::{EnqueueOutcome, OnDuplicate, Unique};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{AdminStore, IntakeStore, JobEdit, MaintenanceStore, StoreResult};
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use milepost_core::transition::Verb;
use milepost_postgres::{PostgresOptions, PostgresStore, enqueue};
use milepost_testkit::database::{Database, until_one_waits};
use milepost_testkit::examine::examine;
use milepost_testkit::proxy::{Moment, Proxy};
use milepost_testkit::scene::KIND;
use milepost_testkit::wait;
use serde_json::json;
use sqlx::{Connection, PgConnection};

fn job(number: u32) -> NewJob {
    NewJob::new(KIND, &json!(number)).unwrap().key("k").on_duplicate(OnDuplicate::replace())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_exists_when_its_transaction_commits() {
    let (database, store, scene) = Database::with_scene().await;
    let first = scene.enqueue(job(1)).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    assert_eq!(enqueue(&mut tx, &job(2)).await.unwrap().outcome, EnqueueOutcome::Replaced);
    assert!(scene.claim(10).await.is_empty(), "a claim does not wait for it, and does not take the job");
    tx.rollback().await.unwrap();
    assert_eq!(scene.view(first).await.payload.get(), "1");
    assert_eq!(scene.count(first, Verb::Edit).await, 0);

    let mut tx = connection.begin().await.unwrap();
    assert_eq!(enqueue(&mut tx, &job(3)).await.unwrap().job, first);
    let other = {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue(&job(4)).await.unwrap() })
    };
    until_one_waits(&store).await;
    tx.commit().await.unwrap();
    assert_eq!(
        other.await.unwrap(),
        Enqueued::of(first, EnqueueOutcome::Replaced),
        "it sees the first replacement"
    );
    assert_eq!(scene.view(first).await.payload.get(), "4");
    wait::until("the job is claimed", || async { scene.claim(10).await.len() == 1 }).await;
    scene.assert_history_folds(first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_finds_its_job_claimed_meanwhile_makes_a_next_one() {
    let (database, store, scene) = Database::with_scene().await;
    let first = scene.enqueue(job(1)).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    // The call waits for the row that a claim has locked.
    let mut tx = connection.begin().await.unwrap();
    let lock = "select from milepost.live where id = $1 for update";
    sqlx::query(lock).bind(first.0).execute(&mut *tx).await.unwrap();
    let call = {
        let store = store.clone();
        tokio::spawn(async move { store.enqueue(&job(2)).await.unwrap() })
    };
    until_one_waits(&store).await;
    let claim =
        "update milepost.live set state = 'running', ready_at = null, token = 1, attempt = 1 where id = $1";
    sqlx::query(claim).bind(first.0).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    let next = call.await.unwrap();
    assert_eq!((next.outcome, next.job == first), (EnqueueOutcome::Created, false));
    assert_eq!(scene.view(first).await.payload.get(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_pass_on_while_retention_deletes_the_jobs_that_had_them() {
    let (_database, store, scene) = Database::with_scene().await;
    let policy = RetentionPolicy {
        succeeded: Keep::For(Duration::ZERO),
        keys: Keep::For(Duration::ZERO),
        ..RetentionPolicy::FOREVER
    };
    let live = || job(1).on_duplicate(OnDuplicate::keep().unique(Unique::Live));
    for _ in 0..60 {
        let held = scene.running(live()).await;
        scene.finish(&held, End::Succeed { result: None }).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let next = live();
        let (made, pruned) =
            tokio::join!(store.enqueue(&next), store.prune(&policy, Pace { limit: 100, rest: 0 }));
        pruned.unwrap();
        assert_eq!(made.unwrap().outcome, EnqueueOutcome::Created, "neither waits for the other in a circle");
        let claimed = scene.claim(1).await.remove(0);
        scene.finish(&claimed, End::Succeed { result: None }).await;
    }
    assert_eq!(examine(&scene.store).await, []);
}

/// Repeats a call over a connection that breaks once until the store answers. Returns the answer, and whether the connection was cut.
async fn with_a_cut<T>(
    url: &str,
    request: usize,
    moment: Moment,
    call: impl AsyncFn(&PostgresStore) -> StoreResult<T>,
) -> (T, bool) {
    let (proxy, url) = Proxy::for_url(url).await;
    proxy.cut("milepost", request, moment);
    let options = PostgresOptions { connections_max: 1, ..PostgresOptions::default() };
    let store = loop {
        if let Ok(store) = PostgresStore::connect(&url, options.clone()).await {
            break store;
        }
    };
    let answer = loop {
        match call(&store).await {
            Ok(answer) => break answer,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    store.close().await;
    (answer, proxy.has_cut())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_connection_breaks_at_any_message_happen_completely() {
    let (database, _store, scene) = Database::with_scene().await;
    let url = database.url();
    for moment in [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply] {
        for request in 0.. {
            let key = format!("{request} {moment:?}");
            let asked = job(1).key(&key);
            let (made, was_cut) =
                with_a_cut(&url, request, moment, async |store| store.enqueue(&asked).await).await;
            assert_eq!(made.job, asked.id);
            assert_eq!(
                scene.history(made.job).await.len(),
                1,
                "a repeated call does not replace its own job"
            );

            let by = job(2).key(&key);
            let (replaced, _) =
                with_a_cut(&url, request, moment, async |store| store.enqueue(&by).await).await;
            assert_eq!(replaced, Enqueued::of(made.job, EnqueueOutcome::Replaced));
            let edit = JobEdit { max_attempts: Some(3), ..JobEdit::default() };
            with_a_cut(&url, request, moment, async |store| store.edit_job(made.job, &edit).await).await;
            let view = scene.view(made.job).await;
            assert_eq!((view.payload.get(), view.row.max_attempts), ("2", 3));
            let edits = scene.count(made.job, Verb::Edit).await;
            assert!((2..=4).contains(&edits), "each was applied once or twice: {edits}");
            scene.assert_history_folds(made.job).await;
            if !was_cut {
                assert!(request > 2, "{moment:?}: {request} messages were cut");
                break;
            }
        }
    }
    assert_eq!(examine(&scene.store).await, []);
}
