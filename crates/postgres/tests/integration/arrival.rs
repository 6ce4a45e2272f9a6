//! Tests of imports: each page is inserted once, and all other changes are refused.

use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{FeedStore, IntakeStore};
use milepost_core::relocation::rows::Queue;
use milepost_core::relocation::{Marks, MoveError, MoveId, Page, Part, Position, Rows};
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use sqlx::Executor;

const FROM: &str = "sqlite:it's.db";
const NOTHING: Marks = Marks { worker_last: 0 };

fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> MoveError {
    match answer {
        Err(StoreError::Move(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn page(name: &str) -> Page {
    let rows = Rows::Queues(vec![Queue { name: name.to_owned(), paused_at: None }]);
    Page { after: Position::Start, reached: Position::Name(name.to_owned()), rows, is_last: true }
}

async fn bring_all(store: &PostgresStore, id: MoveId) {
    for progress in store.arrived(id).await.unwrap().iter().filter(|progress| !progress.done) {
        let rows = match progress.part {
            Part::Workers => Rows::Workers(Vec::new()),
            Part::Queues => Rows::Queues(Vec::new()),
            Part::KindLimits => Rows::KindLimits(Vec::new()),
            Part::GroupLimits => Rows::GroupLimits(Vec::new()),
            Part::GroupBuckets => Rows::GroupBuckets(Vec::new()),
            Part::RetentionSettings => Rows::RetentionSettings(Vec::new()),
            Part::Schedules => Rows::Schedules(Vec::new()),
            Part::BulkDefinitions => Rows::BulkDefinitions(Vec::new()),
            Part::DagVersions => Rows::DagVersions(Vec::new()),
            Part::Dags => Rows::Dags(Vec::new()),
            Part::DagTasks => Rows::DagTasks(Vec::new()),
            Part::Audit => Rows::Audit(Vec::new()),
            Part::Jobs => Rows::Jobs(Vec::new()),
            Part::Keys => Rows::Keys(Vec::new()),
            Part::Progress => Rows::Progress(Vec::new()),
            Part::Bulks => Rows::Bulks(Vec::new()),
            Part::BulkSettings => Rows::BulkSettings(Vec::new()),
            Part::BulkFailures => Rows::BulkFailures(Vec::new()),
            Part::BulkFiles => Rows::BulkFiles(Vec::new()),
            Part::BulkTargets => Rows::BulkTargets(Vec::new()),
            Part::Batches => Rows::Batches(Vec::new()),
            Part::BatchInputs => Rows::BatchInputs(Vec::new()),
            Part::BatchTasks => Rows::BatchTasks(Vec::new()),
            Part::BatchSpreads => Rows::BatchSpreads(Vec::new()),
            Part::BatchWaits => Rows::BatchWaits(Vec::new()),
            Part::BatchSignals => Rows::BatchSignals(Vec::new()),
            Part::BatchHistory => Rows::BatchHistory(Vec::new()),
            Part::Aggregates => Rows::Aggregates(Vec::new()),
            Part::Events => Rows::Events(Vec::new()),
            Part::Consumers => Rows::Consumers(Vec::new()),
            Part::ProcessedEvents => Rows::ProcessedEvents(Vec::new()),
            Part::Checkpoints => Rows::Checkpoints(Vec::new()),
            Part::ParkedEvents => Rows::ParkedEvents(Vec::new()),
            Part::InboxLetters => Rows::InboxLetters(Vec::new()),
            Part::InboxTallies => Rows::InboxTallies(Vec::new()),
            Part::Subscriptions => Rows::Subscriptions(Vec::new()),
            Part::ParkedAggregates => Rows::ParkedAggregates(Vec::new()),
            Part::HeldEvents => Rows::HeldEvents(Vec::new()),
            Part::DeadEvents => Rows::DeadEvents(Vec::new()),
            Part::EventWorks => Rows::EventWorks(Vec::new()),
            Part::History => Rows::History(Vec::new()),
            Part::ChangeSources => Rows::ChangeSources(Vec::new()),
            Part::Slots => Rows::Slots(Vec::new()),
            Part::Ended => Rows::Ended(Vec::new()),
            Part::AccessTokens => Rows::AccessTokens(Vec::new()),
            Part::Live => Rows::Live(Vec::new()),
        };
        let empty = Page { after: Position::Start, reached: Position::Start, rows, is_last: true };
        store.bring(id, &empty).await.unwrap();
    }
}

#[tokio::test]
async fn callers_in_any_language_are_refused_until_the_move_is_complete() {
    let (_database, store) = Database::with_store().await;
    // A server that used the empty store has begun an epoch.
    store.feed_end().await.unwrap();
    let id = MoveId::new();
    store.begin_move(id, FROM).await.unwrap();
    store.feed_end().await.unwrap();
    let job = NewJob::new("mail", &()).unwrap();
    let mut tx = store.pool().begin().await.unwrap();
    let told = refusal(milepost_postgres::enqueue(&mut tx, &job).await).to_string();
    assert!(told.contains(FROM) && !told.contains(&id.to_string()), "{told}");
    drop(tx);
    let refused = store.pool().execute("select milepost.enqueue('mail')").await.unwrap_err().to_string();
    assert!(refused.contains("is being filled from"), "{refused}");
    assert!(matches!(refusal(store.complete_move(id, &NOTHING, "me").await), MoveError::Closed { .. }));
    bring_all(&store, id).await;
    store.complete_move(id, &NOTHING, "me").await.unwrap();
    store.enqueue_many(&[job]).await.unwrap();
    assert!(matches!(refusal(store.complete_move(id, &NOTHING, "me").await), MoveError::Closed { .. }));
    assert!(!store.give_up_move(id).await.unwrap(), "a completed move cannot be canceled");
    assert!(matches!(refusal(store.begin_move(MoveId::new(), FROM).await), MoveError::NotEmpty { .. }));
}

#[tokio::test]
async fn a_check_whether_a_move_can_begin_changes_nothing() {
    let (_database, store) = Database::with_store().await;
    store.check_move(MoveId::new(), FROM).await.unwrap();
    store.begin_move(MoveId::new(), FROM).await.unwrap();
    let words = refusal(store.check_move(MoveId::new(), FROM).await).to_string();
    assert!(words.contains("target of a move"), "{words}");

    let (_database, store) = Database::with_store().await;
    store.check_move(MoveId::new(), FROM).await.unwrap();
    store.enqueue_many(&[NewJob::new("mail", &()).unwrap()]).await.unwrap();
    assert!(matches!(refusal(store.check_move(MoveId::new(), FROM).await), MoveError::NotEmpty { .. }));
    store.enqueue_many(&[NewJob::new("mail", &()).unwrap()]).await.unwrap();
}

#[tokio::test]
async fn every_table_is_closed_but_those_that_no_caller_writes() {
    let (_database, store) = Database::with_store().await;
    store.begin_move(MoveId::new(), FROM).await.unwrap();
    let open: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class c
         where relnamespace = 'milepost'::regnamespace and relkind in ('r', 'p')
           and not exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'moving')
         order by relname",
    )
    .fetch_all(store.pool())
    .await
    .unwrap();
    assert_eq!(open, ["arrival", "arrival_part", "epoch", "schema_migration", "timeline", "transition"]);
}

#[tokio::test]
async fn a_page_is_brought_once() {
    let (_database, store) = Database::with_store().await;
    let id = MoveId::new();
    store.begin_move(id, FROM).await.unwrap();
    let (first, second) = (page("a"), page("b"));
    let (one, two) = tokio::join!(store.bring(id, &first), store.bring(id, &second));
    let raced = [one, two].into_iter().filter_map(Result::err).map(|error| refusal::<()>(Err(error)));
    assert_eq!(raced.collect::<Vec<_>>(), [MoveError::Raced { id, part: Part::Queues }]);
    let counts = store.count_parts().await.unwrap();
    assert!(counts.contains(&(Part::Queues, 1)), "{counts:?}");
    assert_eq!(counts.iter().map(|(part, _)| *part).collect::<Vec<_>>(), Part::ALL);
    let arrived = store.arrived(id).await.unwrap();
    let queues = arrived.iter().find(|progress| progress.part == Part::Queues).unwrap();
    assert_eq!((queues.rows, queues.done), (1, true));
}

#[tokio::test]
async fn what_was_given_up_takes_no_further_page() {
    let (_database, store) = Database::with_store().await;
    let id = MoveId::new();
    store.begin_move(id, FROM).await.unwrap();
    store.bring(id, &page("a")).await.unwrap();
    assert!(store.give_up_move(id).await.unwrap());
    assert!(!store.give_up_move(id).await.unwrap());
    assert_eq!(refusal(store.bring(id, &page("b")).await), MoveError::NotUnderWay(id));
    assert!(store.count_parts().await.unwrap().iter().all(|(_, rows)| *rows == 0));
    store.begin_move(MoveId::new(), FROM).await.unwrap();
}

#[tokio::test]
async fn numbers_that_were_given_out_elsewhere_are_not_given_out_again() {
    let (_database, store) = Database::with_store().await;
    let id = MoveId::new();
    store.begin_move(id, FROM).await.unwrap();
    bring_all(&store, id).await;
    // The worker's row is gone, but the history may still refer to it.
    store.complete_move(id, &Marks { worker_last: 41 }, "ada@host").await.unwrap();
    let scene = milepost_testkit::Scene::on(std::sync::Arc::new(store.clone())).await;
    assert!(scene.worker.0 > 41, "{:?}", scene.worker);
    let note = "select who || ' ' || what || ' ' || (detail -> 'after' ->> 'from') from milepost.audit";
    let note: String = sqlx::query_scalar(note).fetch_one(store.pool()).await.unwrap();
    assert_eq!(note, format!("ada@host move {FROM}"));
}
