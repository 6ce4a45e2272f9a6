//! What joins a transaction of the caller.

use milepost_core::error::StoreError;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_core::state::JobState;

use crate::fixture::{HOUR, Home, claim, enqueue, job, state, worker};

#[tokio::test]
async fn a_transaction_that_rolls_back_leaves_nothing() {
    let home = Home::new().await;
    let (first, second) = (job("a").key("k").group("g"), job("a"));
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    milepost_sqlite::enqueue_many(&tx, &[first.clone(), second]).unwrap();
    tx.rollback().unwrap();
    let failed = first.clone();
    let outcome: Result<(), StoreError> = home
        .store
        .transaction(move |tx| {
            milepost_sqlite::enqueue(tx, &failed)?;
            Err(StoreError::NoSuchJob(failed.id))
        })
        .await;
    assert!(matches!(outcome, Err(StoreError::NoSuchJob(_))));
    for table in ["job", "live", "history", "job_key", "group_slot"] {
        let rows: i64 =
            conn.query_row(&format!("SELECT count(*) FROM milepost_{table}"), (), |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    assert!(!home.store.enqueue_many(&[first]).await.unwrap()[0].duplicate);
}

#[tokio::test]
async fn a_handler_completes_in_the_transaction_of_its_effects() {
    let home = Home::new().await;
    let id = enqueue(&home.store, job("a")).await;
    let worker = worker(&home.store, &["a"], HOUR).await;
    let run = claim(&home.store, worker, &["a"], 1).await[0].run;
    home.connection().execute("CREATE TABLE effect (n INTEGER)", ()).unwrap();
    let done: Result<(), StoreError> = home
        .store
        .transaction(move |tx| {
            tx.execute("INSERT INTO effect VALUES (1)", ())
                .map_err(|e| StoreError::Database { verb: "effect", cause: e.into() })?;
            milepost_sqlite::complete(tx, run, Some("{\"sent\":true}"))
        })
        .await;
    done.unwrap();
    assert_eq!(state(&home.store, id).await, JobState::Succeeded);
    let view = home.store.job(id).await.unwrap().unwrap();
    assert_eq!(view.result.unwrap().get(), "{\"sent\":true}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_in_a_closure_is_told_to_its_caller_only() {
    let home = Home::new().await;
    let mut calls = Vec::new();
    for n in 0..60 {
        let store = home.store.clone();
        calls.push(tokio::spawn(async move {
            let outcome: Result<(), StoreError> = store
                .transaction(move |tx| {
                    milepost_sqlite::enqueue(tx, &job("a"))?;
                    assert!(n % 3 != 0, "number {n} is unlucky");
                    Ok(())
                })
                .await;
            (n, outcome)
        }));
    }
    for call in calls {
        let (n, outcome) = call.await.unwrap();
        match outcome {
            Err(error) => {
                assert_eq!(n % 3, 0);
                assert!(error.chain().contains("is unlucky"), "{}", error.chain());
            }
            Ok(()) => assert_ne!(n % 3, 0),
        }
    }
    assert_eq!(home.store.count_by_state().await.unwrap(), [(JobState::Pending, 40)]);
}

#[tokio::test]
async fn a_closure_that_ends_the_transaction_is_told_and_the_writer_goes_on() {
    let home = Home::new().await;
    let outcome: Result<(), StoreError> = home
        .store
        .transaction(|tx| {
            tx.execute_batch("ROLLBACK").map_err(|e| StoreError::Database { verb: "test", cause: e.into() })
        })
        .await;
    assert!(outcome.unwrap_err().chain().contains("ended from within"));
    enqueue(&home.store, job("a")).await;
}

#[tokio::test]
async fn those_who_shared_a_transaction_that_a_closure_rolled_back_may_try_again() {
    let home = Home::new().await;
    home.connection()
        .execute_batch(
            "CREATE TABLE vetoed (n);
             CREATE TRIGGER veto BEFORE INSERT ON vetoed BEGIN SELECT RAISE(ROLLBACK, 'no such thing'); END",
        )
        .unwrap();
    let refused = |e: rusqlite::Error| StoreError::Refused { verb: "veto", cause: e.into() };
    // A stalled machine may give each a transaction of its own.
    for _ in 0..100 {
        let (go, wait) = std::sync::mpsc::channel();
        let neighbour = home.store.transaction(move |tx| {
            milepost_sqlite::enqueue(tx, &job("a"))?;
            wait.recv().unwrap();
            Ok::<_, StoreError>(())
        });
        let culprit = home
            .store
            .transaction(move |tx| tx.execute("INSERT INTO vetoed VALUES (1)", ()).map_err(refused));
        let (neighbour, culprit, ()) = tokio::join!(neighbour, culprit, async { go.send(()).unwrap() });
        let own = culprit.unwrap_err();
        assert!(
            matches!(own, StoreError::Refused { .. }) && own.chain().contains("no such thing"),
            "{own:?}"
        );
        if let Err(lost) = neighbour {
            assert!(lost.is_transient(), "{lost:?}");
            assert!(lost.chain().contains("another command of this process"), "{}", lost.chain());
            enqueue(&home.store, job("a")).await;
            return;
        }
    }
    panic!("the two never shared a transaction");
}

#[tokio::test]
async fn a_result_that_is_no_json_is_refused_and_an_older_one_is_shown_as_text() {
    let home = Home::new().await;
    let id = enqueue(&home.store, job("a")).await;
    let worker = worker(&home.store, &["a"], HOUR).await;
    let run = claim(&home.store, worker, &["a"], 1).await[0].run;
    let done = |result: &'static str| {
        home.store.transaction(move |tx| milepost_sqlite::complete(tx, run, Some(result)))
    };
    let refused: StoreError = done("{sent: yes}").await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.chain().contains("the result is not JSON"), "{}", refused.chain());
    assert_eq!(state(&home.store, id).await, JobState::Running);
    done("{\"sent\": true}").await.unwrap();
    let theirs = "UPDATE milepost_ended SET result = 'a \"word\"'";
    assert_eq!(home.connection().execute(theirs, ()).unwrap(), 1);
    let view = home.store.job(id).await.unwrap().unwrap();
    assert_eq!(view.result.unwrap().get(), r#""a \"word\"""#);
}

#[tokio::test]
async fn one_job_that_cannot_be_accepted_refuses_the_call() {
    let home = Home::new().await;
    let refused = home.store.enqueue_many(&[job("a"), job("")]).await;
    assert!(matches!(refused, Err(StoreError::Invalid { index: 1, .. })));
    assert_eq!(home.store.count_by_state().await.unwrap(), []);
}
