//! Every call in a transaction of each library, on a real PostgreSQL. `MILEPOST_TEST_POSTGRES` is the URL of a migrated store, and
//! `MILEPOST_PROGRAM` the program `milepost`.

use std::process::Command;
use std::time::Duration;

use diesel::Connection as _;
use diesel::connection::{SimpleConnection as _, TransactionManager as _};
use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _, TransactionManager as _};
use example_transactions::{Failed, diesel_async_library, diesel_library, sea_orm_library, tokio_postgres_library};
use milepost::event::{Aggregate, Event, NewEvent};
use milepost::inbox::Received;
use milepost::sql::{self, BulkRun, Refusal};
use milepost::{EnqueueOutcome, EventId, Job, JobId, JobState, NewBatch, NewJob, NewSignal, OnDuplicate, Operated, Run, RunToken, SignalResult, StartAt};
use sea_orm::{ConnectionTrait as _, TransactionTrait as _};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

/// A mail, whose text no library may change.
#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl Job for Mail {
    const KIND: &'static str = "mail";
}

const TEXT: &str = "Zoë 'said' \"{$1}\" \\ %s ? 漢 🦀";
const GRACE: Duration = Duration::from_secs(10);

fn job(library: &str) -> NewJob {
    Mail { to: TEXT.to_owned() }.to_job().unwrap().queue(library).start(StartAt::After(Duration::from_secs(3_600)))
}

fn event(library: &str) -> NewEvent {
    NewEvent::new(Aggregate::new("order", library), "order.paid", &TEXT).unwrap()
}

/// Returns the event of another service with this sequence.
fn received(library: &str, sequence: i64) -> Event {
    let NewEvent { id, event_type, payload, headers, .. } = event(library);
    let aggregate = Aggregate::new("parcel", library);
    Event { id, aggregate, sequence, event_type, payload, headers, emitted_at: milepost::Timestamp::now() }
}

/// Runs every call in a transaction. `$run` runs the call that `$call` names.
macro_rules! every_call {
    ($library:expr, |$call:ident| $run:expr) => {{
        let library: &str = $library;
        let $call = sql::enqueue(&job(library).key(library)).unwrap();
        let first = $run.unwrap();
        assert!(!first.duplicate);
        let $call = sql::enqueue_many(&[job(library).key(library), job(library)]).unwrap();
        let made = $run.unwrap();
        assert_eq!((made[0].job, made[0].duplicate, made[1].duplicate), (first.job, true, false));
        let replace = || job(library).key(format!("{library} replaced")).on_duplicate(OnDuplicate::replace());
        let $call = sql::enqueue_many(&[replace(), replace()]).unwrap();
        let made = $run.unwrap();
        assert_eq!((made[0].outcome, made[1].outcome), (EnqueueOutcome::Created, EnqueueOutcome::Replaced));
        let $call = sql::enqueue_many(&[]).unwrap();
        assert!($run.unwrap().is_empty());
        let $call = sql::cancel(made[1].job, Some("it was a mistake"), GRACE);
        assert_eq!($run.unwrap(), Operated::Done(JobState::Canceled));
        let $call = sql::complete(Run { job: first.job, token: RunToken(7) }, None);
        assert!(!$run.unwrap(), "it does not run");

        let $call = sql::emit(&event(library)).unwrap();
        assert_eq!($run.unwrap().sequence, 1);
        let $call = sql::emit_many(&[event(library).header("tenant", TEXT), event(library)]).unwrap();
        assert_eq!($run.unwrap().iter().map(|emitted| emitted.sequence).collect::<Vec<_>>(), [2, 3]);

        let (id, other) = (EventId::new(), EventId::new());
        for (id, is_first) in [(id, true), (id, false), (other, true)] {
            let $call = sql::once(library, id).unwrap();
            assert_eq!($run.unwrap(), is_first);
        }
        let [one, two, three] = [1, 2, 3].map(|sequence| received(library, sequence));
        for (event, verdict) in [
            (&one, Received::Apply { more: false }),
            (&one, Received::Duplicate),
            (&three, Received::Parked { more: false }),
            (&two, Received::Apply { more: true }),
        ] {
            let $call = sql::receive(library, event).unwrap();
            assert_eq!($run.unwrap(), verdict);
        }
        let $call = sql::next_parked(library, &three.aggregate).unwrap();
        let kept = $run.unwrap().expect("the third event");
        assert_eq!((kept.id, kept.sequence, kept.payload.get()), (three.id, 3, three.payload.get()));
        assert!($run.unwrap().is_none());

        let $call = sql::start_batch(&NewBatch::new("notice", &TEXT).unwrap().key(library)).unwrap();
        let started = $run.unwrap();
        assert!(!started.duplicate);
        let signal = NewSignal::new(started.batch, "approved").payload(&TEXT).unwrap().id(library);
        for result in [SignalResult::Accepted, SignalResult::Duplicate] {
            let $call = sql::signal(&signal).unwrap();
            assert_eq!($run.unwrap(), result);
        }
    }};
}

/// Calls that PostgreSQL refuses. Each aborts its transaction.
fn refused_cancel() -> sql::Call<Operated> {
    sql::cancel(JobId::new(), None, GRACE)
}

fn refused_bulk() -> sql::Call<milepost::Enqueued> {
    sql::start_bulk(&BulkRun { name: "nothing".to_owned(), ..BulkRun::default() })
}

fn refused_event(library: &str) -> sql::Call<milepost::event::Emitted> {
    let aggregate = Aggregate::new("order", library);
    sql::emit(&NewEvent::new(aggregate, "order.paid", &1).unwrap().sequence(7)).unwrap()
}

/// Asserts that a call was refused. Libraries that report no SQLSTATE report the message.
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Failed>, refusal: Refusal, message: &str) {
    match answer {
        Err(Failed::Refused(reason, text)) => assert!(reason == refusal && text.contains(message), "{text}"),
        Err(Failed::Library(text)) => assert!(text.contains(message), "{text}"),
        other => panic!("{other:?}"),
    }
}

const NO_JOB: &str = "there is no job";
const NO_BULK: &str = "there is no bulk job named 'nothing'";
const GAP: &str = "gap";

async fn connected(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("PostgreSQL");
    tokio::spawn(connection);
    client
}

/// Returns the URL of the store, with a table of the application and a DAG.
async fn store() -> &'static str {
    static URL: OnceCell<String> = OnceCell::const_new();
    let prepared = async || {
        let url = std::env::var("MILEPOST_TEST_POSTGRES").expect("MILEPOST_TEST_POSTGRES");
        let program = std::env::var("MILEPOST_PROGRAM").unwrap_or_else(|_| "milepost".to_owned());
        let file = std::env::temp_dir().join(format!("milepost-notice-{}.yaml", std::process::id()));
        std::fs::write(&file, "name: notice\ntasks:\n  ask: { wait: { signal: approved } }\n  tell: { kind: mail, after: [ask] }\n").unwrap();
        let defined = Command::new(program).args(["--store", &url, "batch", "define"]).arg(&file).status();
        assert!(defined.expect("the program runs").success());
        std::fs::remove_file(&file).unwrap();
        connected(&url).await.batch_execute("create table shop_order (library text)").await.unwrap();
        url
    };
    URL.get_or_init(prepared).await
}

fn order(library: &str) -> String {
    format!("insert into shop_order values ('{library}')")
}

/// Asserts that everything of a library is stored, or nothing.
async fn assert_stored(library: &str, is_stored: bool) {
    let client = connected(store().await).await;
    for (statement, count) in [
        ("select count(*) from shop_order where library = $1", 1),
        ("select count(*) from milepost.job where queue = $1", 3),
        ("select count(*) from milepost.job where queue = $1 and payload ->> 'to' = 'Zoë ''said'' \"{$1}\" \\ %s ? 漢 🦀'", 3),
        ("select count(*) from milepost.event where aggregate_type = 'order' and aggregate_id = $1", 3),
        ("select count(*) from milepost.processed_event where consumer = $1", 2),
        ("select count(*) from milepost.batch where key = $1", 1),
    ] {
        let found: i64 = client.query_one(statement, &[&library]).await.unwrap().get(0);
        assert_eq!(found, if is_stored { count } else { 0 }, "{library}: {statement}");
    }
}

#[tokio::test]
async fn tokio_postgres_stores_with_its_transaction() {
    let library = "tokio-postgres";
    let mut client = connected(store().await).await;
    for commits in [false, true] {
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute(&order(library)).await.unwrap();
        every_call!(library, |call| tokio_postgres_library::run(&transaction, &call).await);
        if commits { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
        assert_stored(library, commits).await;
    }
    let transaction = client.transaction().await.unwrap();
    let answer = tokio_postgres_library::run(&transaction, &refused_cancel()).await;
    assert!(matches!(answer, Err(Failed::Refused(Refusal::NoSuchJob, _))), "{answer:?}");
    drop(transaction);
    let transaction = client.transaction().await.unwrap();
    assert_refused(tokio_postgres_library::run(&transaction, &refused_bulk()).await, Refusal::NoSuchBulk, NO_BULK);
    drop(transaction);
    let transaction = client.transaction().await.unwrap();
    assert_refused(tokio_postgres_library::run(&transaction, &refused_event(library)).await, Refusal::OutOfSequence, GAP);
}

#[tokio::test]
async fn sea_orm_stores_with_its_transaction() {
    let library = "sea-orm";
    let database = sea_orm::Database::connect(store().await).await.unwrap();
    for commits in [false, true] {
        let transaction = database.begin().await.unwrap();
        transaction.execute_unprepared(&order(library)).await.unwrap();
        every_call!(library, |call| sea_orm_library::run(&transaction, &call).await);
        if commits { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
        assert_stored(library, commits).await;
    }
    let transaction = database.begin().await.unwrap();
    let answer = sea_orm_library::run(&transaction, &refused_cancel()).await;
    assert!(matches!(answer, Err(Failed::Refused(Refusal::NoSuchJob, _))), "{answer:?}");
    let transaction = database.begin().await.unwrap();
    assert_refused(sea_orm_library::run(&transaction, &refused_bulk()).await, Refusal::NoSuchBulk, NO_BULK);
    let transaction = database.begin().await.unwrap();
    assert_refused(sea_orm_library::run(&transaction, &refused_event(library)).await, Refusal::OutOfSequence, GAP);
}

#[tokio::test(flavor = "multi_thread")]
async fn diesel_stores_with_its_transaction() {
    type Manager = <diesel::PgConnection as diesel::Connection>::TransactionManager;
    let library = "diesel";
    let mut connection = diesel::PgConnection::establish(store().await).unwrap();
    for commits in [false, true] {
        Manager::begin_transaction(&mut connection).unwrap();
        connection.batch_execute(&order(library)).unwrap();
        every_call!(library, |call| diesel_library::run(&mut connection, &call));
        if commits {
            Manager::commit_transaction(&mut connection).unwrap();
        } else {
            Manager::rollback_transaction(&mut connection).unwrap();
        }
        assert_stored(library, commits).await;
    }
    assert_refused(diesel_library::run(&mut connection, &refused_cancel()), Refusal::NoSuchJob, NO_JOB);
    assert_refused(diesel_library::run(&mut connection, &refused_bulk()), Refusal::NoSuchBulk, NO_BULK);
    assert_refused(diesel_library::run(&mut connection, &refused_event(library)), Refusal::OutOfSequence, GAP);
}

#[tokio::test]
async fn diesel_async_stores_with_its_transaction() {
    type Manager = <diesel_async::AsyncPgConnection as diesel_async::AsyncConnection>::TransactionManager;
    let library = "diesel-async";
    let mut connection = diesel_async::AsyncPgConnection::establish(store().await).await.unwrap();
    for commits in [false, true] {
        Manager::begin_transaction(&mut connection).await.unwrap();
        connection.batch_execute(&order(library)).await.unwrap();
        every_call!(library, |call| diesel_async_library::run(&mut connection, &call).await);
        if commits {
            Manager::commit_transaction(&mut connection).await.unwrap();
        } else {
            Manager::rollback_transaction(&mut connection).await.unwrap();
        }
        assert_stored(library, commits).await;
    }
    assert_refused(diesel_async_library::run(&mut connection, &refused_cancel()).await, Refusal::NoSuchJob, NO_JOB);
    assert_refused(diesel_async_library::run(&mut connection, &refused_bulk()).await, Refusal::NoSuchBulk, NO_BULK);
    assert_refused(diesel_async_library::run(&mut connection, &refused_event(library)).await, Refusal::OutOfSequence, GAP);
}
