//! Work that events start: once for each event and subscription, in the transaction that records the event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::batch::listing::{BatchFilter, TaskFilter};
use milepost_core::batch::start::NewBatch;
use milepost_core::batch::wait::NewSignal;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::Wait;
use milepost_core::event::{Aggregate, NewEvent, Outcome, PageSize, Publisher};
use milepost_core::event_work::{EventWork, Work};
use milepost_core::ident::{BatchId, EventId};
use milepost_core::job::NewJob;
use milepost_core::port::{LogReader, Store};
use milepost_core::search::JobFilter;
use serde_json::json;
use tokio::task::JoinSet;

use milepost_testkit::examine::examine;
use milepost_testkit::scene::{KIND, Scene};
use milepost_testkit::{relay, wait};

const LONG: Duration = Duration::from_secs(600);
const ALL: PageSize = PageSize { events_max: 1_000, bytes_max: 1 << 30 };

/// Emits events of an order each, and returns their ids.
async fn emit(store: &Arc<dyn Store>, events: usize) -> Vec<EventId> {
    let event = |n: usize| NewEvent::new(Aggregate::new("order", n.to_string()), "order.placed", &n).unwrap();
    let events: Vec<NewEvent> = (0..events).map(event).collect();
    store.emit_many(&events).await.expect("emitted");
    events.iter().map(|event| event.id).collect()
}

fn job_of(event: EventId) -> EventWork {
    EventWork { event, work: Work::Job(Scene::job()) }
}

async fn jobs(store: &Arc<dyn Store>) -> usize {
    store.jobs(&JobFilter { limit: 1_000, ..JobFilter::default() }).await.expect("listed").len()
}

/// Returns a publisher that owns the log, with its reader.
async fn owner(scene: &Scene, subscription: &str) -> (Publisher, Box<dyn LogReader>) {
    relay::reader(scene.store.as_ref(), subscription, LONG).await
}

pub async fn an_event_starts_its_job_once(scene: Scene) {
    let event = emit(&scene.store, 1).await[0];
    let (publisher, _reader) = owner(&scene, "bills").await;
    let first = job_of(event);
    assert_eq!(scene.store.start_work(&publisher, std::slice::from_ref(&first)).await.unwrap(), Some(1));
    assert_eq!(scene.store.start_work(&publisher, &[job_of(event)]).await.unwrap(), Some(0));
    assert_eq!(jobs(&scene.store).await, 1);
    let Work::Job(NewJob { id, .. }) = first.work else { panic!("a job") };
    let started_by = scene.view(id).await.started_by.expect("an event");
    assert_eq!((started_by.event, started_by.subscription.as_str()), (event, "bills"));
    assert_eq!(scene.view(scene.enqueue(Scene::job()).await).await.started_by, None);
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn each_subscription_starts_its_own_work(scene: Scene) {
    let event = emit(&scene.store, 1).await[0];
    for subscription in ["bills", "mails"] {
        let (publisher, _reader) = owner(&scene, subscription).await;
        assert_eq!(scene.store.start_work(&publisher, &[job_of(event)]).await.unwrap(), Some(1));
    }
    assert_eq!(jobs(&scene.store).await, 2);
}

pub async fn a_refused_work_leaves_nothing_of_its_call(scene: Scene) {
    let events = emit(&scene.store, 2).await;
    let (publisher, _reader) = owner(&scene, "bills").await;
    let batch = |event| EventWork { event, work: Work::Batch(NewBatch::new("settlement", &1).unwrap()) };
    let refused = scene.store.start_work(&publisher, &[job_of(events[0]), batch(events[1])]).await;
    assert!(refused.unwrap_err().to_string().contains("settlement"));
    assert_eq!(jobs(&scene.store).await, 0, "the job of the other event was not kept");
    let dag = Dag::check(Definition::new("settlement").task("a", Task::job(KIND))).expect("a DAG");
    scene.store.define_dag(&dag).await.unwrap();
    let again = scene.store.start_work(&publisher, &[job_of(events[0]), batch(events[1])]).await;
    assert_eq!(again.unwrap(), Some(2));
    assert_eq!(scene.store.start_work(&publisher, &[batch(events[1])]).await.unwrap(), Some(0));
    let started =
        scene.store.batches(&BatchFilter { limit: 1, ..BatchFilter::default() }).await.unwrap()[0].id;
    let started_by = scene.store.batch(started).await.unwrap().expect("a batch").started_by;
    assert_eq!(started_by.map(|by| by.event), Some(events[1]));
    assert_eq!(
        scene.store.batches(&BatchFilter { limit: 10, ..BatchFilter::default() }).await.unwrap().len(),
        1
    );
}

pub async fn work_whose_key_exists_counts_as_started(scene: Scene) {
    let events = emit(&scene.store, 2).await;
    let (publisher, _reader) = owner(&scene, "bills").await;
    let keyed = |event| EventWork { event, work: Work::Job(Scene::job().key("order 17")) };
    let first = keyed(events[0]);
    assert_eq!(scene.store.start_work(&publisher, std::slice::from_ref(&first)).await.unwrap(), Some(1));
    assert_eq!(scene.store.start_work(&publisher, &[keyed(events[1])]).await.unwrap(), Some(1));
    assert_eq!(jobs(&scene.store).await, 1);
    let Work::Job(NewJob { id, .. }) = first.work else { panic!("a job") };
    assert_eq!(scene.view(id).await.started_by.map(|by| by.event), Some(events[0]), "the first one");
}

pub async fn a_signal_of_an_event_ends_a_wait(scene: Scene) {
    let dag = Definition::new("d").task("ask", Task::wait(Wait::signal("approved")));
    scene.store.define_dag(&Dag::check(dag).expect("a DAG")).await.unwrap();
    let batch = NewBatch::new("d", &json!({})).unwrap();
    let batch: BatchId = scene.store.start_batch(&batch).await.unwrap().batch;
    let event = emit(&scene.store, 1).await[0];
    let (publisher, _reader) = owner(&scene, "approvals").await;
    let signal =
        NewSignal::new(batch, "approved").id(event.to_string()).payload(&json!({"by": "ann"})).unwrap();
    let work = EventWork { event, work: Work::Signal(signal) };
    assert_eq!(scene.store.start_work(&publisher, std::slice::from_ref(&work)).await.unwrap(), Some(1));
    assert_eq!(scene.store.start_work(&publisher, std::slice::from_ref(&work)).await.unwrap(), Some(0));
    let filter = TaskFilter { limit: 10, ..TaskFilter::default() };
    wait::until("the wait has ended", async || {
        scene.store.advance_batches().await.expect("advanced");
        let tasks = scene.store.batch_tasks(batch, &filter).await.expect("listed");
        tasks[0].state == TaskState::Succeeded
    })
    .await;
    let unknown = NewSignal::new(BatchId::new(), "approved");
    let other = EventWork { event: emit_one(&scene.store).await, work: Work::Signal(unknown) };
    assert!(scene.store.start_work(&publisher, &[other]).await.is_err());
}

/// Emits one more event.
async fn emit_one(store: &Arc<dyn Store>) -> EventId {
    let event = NewEvent::new(Aggregate::new("account", "1"), "account.opened", &()).unwrap();
    store.emit(&event).await.expect("emitted");
    event.id
}

pub async fn calls_at_the_same_time_start_each_event_once(scene: Scene) {
    let events = emit(&scene.store, 40).await;
    let (publisher, _reader) = owner(&scene, "bills").await;
    let mut calls = JoinSet::new();
    for n in 0..6 {
        let (store, publisher) = (scene.store.clone(), publisher.clone());
        let mut works: Vec<EventWork> = events.iter().map(|event| job_of(*event)).collect();
        // Each call begins with another event, so that they meet in any order.
        works.rotate_left(n * 7);
        calls.spawn(async move {
            let started = async || store.start_work(&publisher, &works).await;
            loop {
                match started().await {
                    Ok(started) => return started.expect("the lease is long"),
                    Err(error) => assert!(error.is_transient(), "{}", error.chain()),
                }
            }
        });
    }
    let started: u64 = calls.join_all().await.into_iter().sum();
    assert_eq!((started, jobs(&scene.store).await), (40, 40));
}

pub async fn a_publisher_that_was_taken_for_dead_starts_nothing(scene: Scene) {
    let event = emit(&scene.store, 1).await[0];
    let (frozen, _reader) = relay::reader(scene.store.as_ref(), "bills", Duration::from_millis(50)).await;
    let (next, mut reader) = {
        let publisher = relay::publisher(scene.store.as_ref(), "bills", LONG).await;
        (publisher.clone(), scene.store.reader(publisher))
    };
    let began = Instant::now();
    while reader.balance().await.expect("balanced").taken_over == 0 {
        assert!(began.elapsed() < wait::LIMIT, "no slots were taken over");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(scene.store.start_work(&frozen, &[job_of(event)]).await.unwrap(), None);
    assert_eq!(jobs(&scene.store).await, 0);
    assert_eq!(scene.store.start_work(&next, &[job_of(event)]).await.unwrap(), Some(1));
}

pub async fn a_subscription_that_is_created_again_starts_nothing_again(scene: Scene) {
    let event = emit(&scene.store, 1).await[0];
    let (publisher, _reader) = owner(&scene, "bills").await;
    scene.store.start_work(&publisher, &[job_of(event)]).await.unwrap();
    scene.store.leave(&publisher).await.unwrap();
    assert!(scene.store.remove_subscription("bills").await.unwrap());
    let (publisher, mut reader) = owner(&scene, "bills").await;
    assert_eq!(reader.page(ALL).await.unwrap().events.len(), 1, "the event is read again");
    assert_eq!(scene.store.start_work(&publisher, &[job_of(event)]).await.unwrap(), Some(0));
}

pub async fn what_is_recorded_about_an_event_is_pruned_with_it(scene: Scene) {
    let event = emit(&scene.store, 1).await[0];
    let (publisher, mut reader) = owner(&scene, "bills").await;
    assert_eq!(reader.page(ALL).await.unwrap().events.len(), 1);
    let work = job_of(event);
    scene.store.start_work(&publisher, std::slice::from_ref(&work)).await.unwrap();
    let Work::Job(NewJob { id, .. }) = work.work else { panic!("a job") };
    while scene.store.prune_log(Duration::ZERO).await.unwrap().is_some() {}
    assert!(scene.view(id).await.started_by.is_some(), "the position is before the event");
    reader.commit(&Outcome::default()).await.unwrap();
    wait::until("the event is pruned", async || {
        scene.store.prune_log(Duration::ZERO).await.expect("pruned");
        scene.view(id).await.started_by.is_none()
    })
    .await;
}
