//! Functions that take part in a transaction of the caller.

use milepost_core::error::StoreError;
use milepost_core::event::listing::EventFilter;
use milepost_core::event::{Aggregate, Begin, Changes, InvalidEvent, NewEvent};
use milepost_core::port::{AdminStore, EventLog, IntakeStore, RelayStore, SubscriptionStore};
use milepost_core::state::JobState;

use crate::store::fixture::{HOUR, Home, claim, enqueue, job, state, worker};

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
async fn changes_of_a_callers_transaction_are_told_when_it_commits_and_only_then() {
    let home = Home::new().await;
    home.store.subscribe("audit", Begin::Beginning).await.unwrap();
    // Prepared before any subscription requests changes.
    let mut conn = home.connection();
    let enqueue = |conn: &mut rusqlite::Connection| {
        let tx = conn.transaction().unwrap();
        milepost_sqlite::enqueue(&tx, &job("a")).unwrap();
        tx.query_row("SELECT count(*) FROM milepost_event", (), |row| row.get::<_, i64>(0))
            .map(|events| (events, tx.commit()))
            .unwrap()
            .0
    };
    assert_eq!(enqueue(&mut conn), 0);
    let changes = Changes { kinds: vec!["a".to_owned()], dags: Vec::new() };
    assert!(home.store.record_changes("audit", &changes).await.unwrap());
    assert_eq!(enqueue(&mut conn), 1);
    let tx = conn.transaction().unwrap();
    milepost_sqlite::enqueue(&tx, &job("a")).unwrap();
    tx.rollback().unwrap();
    assert_eq!(enqueue(&mut conn), 2, "a rolled-back transaction leaves no event");
    assert!(milepost_sqlite::foreign_objects(&conn).unwrap().is_empty(), "the triggers belong to Milepost");
    assert!(home.store.remove_subscription("audit").await.unwrap());
    assert_eq!(enqueue(&mut conn), 2, "no subscription requests changes any more");
    let triggers = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'";
    assert_eq!(conn.query_row(triggers, (), |row| row.get::<_, i64>(0)).unwrap(), 0);
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
                    assert!(n % 3 != 0, "call {n} fails");
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
                assert!(error.chain().contains(&format!("call {n} fails")), "{}", error.chain());
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
    // On a stalled machine each closure may get a separate transaction.
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
    panic!("the two calls never shared a transaction");
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

fn event(order: &str) -> NewEvent {
    NewEvent::new(Aggregate::new("order", order), "order.paid", &()).unwrap()
}

async fn sequences(home: &Home) -> Vec<i64> {
    let filter = EventFilter { limit: 100, ..EventFilter::default() };
    home.store.events(&filter).await.unwrap().iter().map(|logged| logged.event.sequence).collect()
}

#[tokio::test]
async fn an_event_a_business_row_and_a_job_commit_together_or_not_at_all() {
    let home = Home::new().await;
    let mut conn = home.connection();
    conn.execute("CREATE TABLE orders (n INTEGER)", ()).unwrap();
    for committed in [false, true] {
        let tx = conn.transaction().unwrap();
        tx.execute("INSERT INTO orders VALUES (17)", ()).unwrap();
        assert_eq!(milepost_sqlite::emit(&tx, &event("17")).unwrap().sequence, 1);
        assert_eq!(milepost_sqlite::emit_many(&tx, &[event("17")]).unwrap()[0].sequence, 2);
        milepost_sqlite::enqueue(&tx, &job("a")).unwrap();
        if committed { tx.commit() } else { tx.rollback() }.unwrap();
        let counted = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM milepost_event),
             (SELECT count(*) FROM milepost_aggregate), (SELECT count(*) FROM milepost_job)";
        let rows: (i64, i64, i64, i64) = conn
            .query_row(counted, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap();
        assert_eq!(rows, if committed { (1, 2, 1, 1) } else { (0, 0, 0, 0) });
    }
    assert_eq!(sequences(&home).await, [2, 1]);
}

#[tokio::test]
async fn events_that_were_refused_leave_the_transaction_as_it_was() {
    let home = Home::new().await;
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    milepost_sqlite::emit(&tx, &event("1")).unwrap();
    let refused = milepost_sqlite::emit_many(&tx, &[event("1"), event("2"), event("1").sequence(9)]);
    assert!(
        matches!(&refused, Err(StoreError::Event { index: 2, invalid: InvalidEvent::Gap { last: 2, .. } })),
        "{refused:?}"
    );
    assert_eq!(milepost_sqlite::emit(&tx, &event("1")).unwrap().sequence, 2);
    tx.commit().unwrap();
    assert_eq!(sequences(&home).await, [2, 1]);
}
