//! Publishers whose events start work in the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::batch::listing::BatchFilter;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::error::StoreError;
use milepost_core::event::relay_listing::{DeadVerb, Replay};
use milepost_core::event::{Aggregate, Begin, Changes, NewEvent};
use milepost_core::event_work::{BatchSpec, Condition, JobSpec, WorkSpec, WorkTemplate};
use milepost_core::job::{NewJob, Priority};
use milepost_core::listing::JobView;
use milepost_core::port::{Operation, Store, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::transition::Verb;
use milepost_relay::publisher::Destination;
use milepost_testkit::faulty::Faulty;
use milepost_testkit::faulty::interceptor::Interceptor;
use milepost_testkit::wait;
use serde_json::{Value, json};

use crate::publishing::desk::{Desk, options, up_to};

pub(crate) fn job_spec(kind: &str) -> JobSpec {
    JobSpec {
        kind: kind.to_owned(),
        queue: None,
        payload: Some(json!({ "order": "${ event.aggregate_id }", "n": "${ event.sequence }" })),
        key: None,
        group: Some("${ event.aggregate_id }".to_owned()),
        priority: Some(Priority::FIRST),
        max_attempts: None,
        timeout: None,
    }
}

fn work(spec: WorkSpec) -> Destination {
    Destination::Work(Arc::new(WorkTemplate::compile(spec).unwrap()))
}

/// Returns work that enqueues a job of this kind for each event.
pub(crate) fn bills(kind: &str) -> Destination {
    work(WorkSpec::Job(job_spec(kind)))
}

/// Returns all jobs of a kind.
async fn jobs(store: &Arc<dyn Store>, kind: &str) -> Vec<JobView> {
    let filter = JobFilter { kind: Some(kind.to_owned()), limit: 5_000, ..JobFilter::default() };
    let mut views = Vec::new();
    for row in store.jobs(&filter).await.unwrap() {
        views.push(store.job(row.id).await.unwrap().unwrap());
    }
    views
}

async fn count(store: &Arc<dyn Store>, kind: &str) -> usize {
    let filter = JobFilter { kind: Some(kind.to_owned()), limit: 5_000, ..JobFilter::default() };
    store.jobs(&filter).await.map_or(0, |jobs| jobs.len())
}

pub(crate) async fn until_started(store: &Arc<dyn Store>, kind: &str, expected: usize) {
    wait::until(&format!("{expected} jobs of {kind} are started"), || async {
        count(store, kind).await >= expected
    })
    .await;
}

/// Asserts that each of these orders has one job for each of its events, enqueued in their order.
pub(crate) async fn assert_one_job_for_each(store: &Arc<dyn Store>, kind: &str, orders: usize, each: usize) {
    let mut found: BTreeMap<String, Vec<(uuid::Uuid, i64)>> = BTreeMap::new();
    for view in jobs(store, kind).await {
        let payload: Value = serde_json::from_str(view.payload.get()).unwrap();
        let order = payload["order"].as_str().unwrap().to_owned();
        assert!(view.started_by.is_some());
        found.entry(order).or_default().push((view.row.id.0, payload["n"].as_i64().unwrap()));
    }
    assert_eq!(found.len(), orders);
    for (order, mut jobs) in found {
        jobs.sort_unstable();
        let sequences: Vec<i64> = jobs.into_iter().map(|(_, n)| n).collect();
        assert_eq!(sequences, up_to(each as i64), "order {order}");
    }
}

pub(crate) async fn each_event_starts_one_job_in_the_order_of_its_aggregate(desk: Desk) {
    desk.emit_mixed(10, 100).await;
    let running = desk.run_to(options("s"), bills("bill"));
    until_started(&desk.store, "bill", 100).await;
    desk.emit_mixed(10, 100).await;
    until_started(&desk.store, "bill", 200).await;
    running.stop().await;
    let running = desk.run_to(options("s"), bills("bill"));
    desk.emit("last", 1).await;
    until_started(&desk.store, "bill", 201).await;
    running.stop().await;
    assert_eq!(count(&desk.store, "bill").await, 201, "a restart starts nothing again");
    let last = jobs(&desk.store, "bill").await;
    let last: Vec<_> = last.iter().filter(|view| view.row.group.as_deref() == Some("last")).collect();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].started_by.as_ref().unwrap().subscription, "s");
}

/// Loses the n-th call of a store, or its answer.
struct Loses {
    left: AtomicUsize,
    answer: bool,
}

impl Loses {
    fn count(&self) -> StoreResult<()> {
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(1) => {
                Err(StoreError::Unavailable { place: "here".to_owned(), cause: "lost on purpose".into() })
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Interceptor for Loses {
    async fn before(&self, _: &'static str) -> StoreResult<()> {
        if self.answer { Ok(()) } else { self.count() }
    }

    async fn after(&self, _: &'static str) -> StoreResult<()> {
        if self.answer { self.count() } else { Ok(()) }
    }
}

pub(crate) async fn a_call_of_the_store_that_fails_or_whose_answer_is_lost_neither_loses_nor_doubles_work(
    desk: Desk,
) {
    for (nth, answer) in (1..=14).flat_map(|nth| [(nth, false), (nth, true)]) {
        let kind = format!("bill-{nth}-{answer}");
        // At the end of the log, so that the first calls do not only read over the events of earlier rounds.
        desk.store.subscribe(&kind, Begin::Now).await.unwrap();
        desk.emit_of(&kind, 5, 20).await;
        let loses: Arc<dyn Interceptor> = Arc::new(Loses { left: AtomicUsize::new(nth), answer });
        let faulty = Desk::new(Faulty::intercepted(desk.store.clone(), loses));
        let mut settings = options(&kind);
        settings.subscription.filter.aggregate_types = vec![kind.clone()];
        settings.poll_interval = Duration::from_millis(20);
        settings.page.events_max = 8;
        // Of an aggregate that is not selected, to be read over.
        desk.emit("other", 1).await;
        let running = faulty.run_to(settings, bills(&kind));
        until_started(&desk.store, &kind, 20).await;
        running.stop().await;
        assert_one_job_for_each(&desk.store, &kind, 5, 4).await;
        assert!(desk.store.dead_events(Some(&kind), None, 1).await.unwrap().is_empty());
    }
}

pub(crate) async fn relays_that_die_and_share_start_each_event_once(desk: Desk) {
    let mut short = options("s");
    short.lease = Duration::from_secs(2);
    short.page.events_max = 16;
    let mut emitted = 0;
    let mut staying = None;
    for _ in 0..3 {
        let dying = desk.run_to(short.clone(), bills("bill"));
        desk.emit_mixed(20, 200).await;
        emitted += 200;
        wait::until("some work is started", || async { count(&desk.store, "bill").await > emitted - 200 })
            .await;
        dying.kill();
        staying.get_or_insert_with(|| desk.run_to(options("s"), bills("bill")));
    }
    until_started(&desk.store, "bill", emitted).await;
    staying.expect("it was started").stop().await;
    assert_one_job_for_each(&desk.store, "bill", 20, emitted / 20).await;
}

async fn emit_payload(desk: &Desk, order: &str, payload: Value) -> NewEvent {
    let event = NewEvent::new(Aggregate::new("order", order), "order.placed", &payload).unwrap();
    desk.store.emit(&event).await.unwrap();
    event
}

pub(crate) async fn only_events_that_meet_the_filter_start_work(desk: Desk) {
    for (order, total) in [("1", 50), ("2", 150), ("3", 20), ("2", 10), ("4", 101)] {
        emit_payload(&desk, order, json!({ "total": total })).await;
    }
    let bad = emit_payload(&desk, "5", json!({})).await;
    let mut settings = options("s");
    settings.condition =
        Some(Condition::compile("event.type == 'order.placed' && event.payload.total > 100").unwrap());
    let running = desk.run_to(settings, bills("bill"));
    until_started(&desk.store, "bill", 2).await;
    wait::until("the event without a total is a dead letter", || async {
        !desk.store.dead_events(None, None, 1).await.unwrap().is_empty()
    })
    .await;
    running.stop().await;
    let groups: Vec<_> =
        jobs(&desk.store, "bill").await.into_iter().filter_map(|view| view.row.group).collect();
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert!(groups.contains(&"2".to_owned()) && groups.contains(&"4".to_owned()), "{groups:?}");
    let dead = desk.store.dead_events(None, None, 10).await.unwrap();
    assert_eq!(dead.iter().map(|dead| dead.event.id).collect::<Vec<_>>(), [bad.id]);
    assert!(dead[0].why.starts_with("the filter cannot be evaluated: "), "{}", dead[0].why);
}

pub(crate) async fn an_event_of_which_no_work_can_be_made_is_a_dead_letter_until_it_is_retried(desk: Desk) {
    let bad = emit_payload(&desk, "1", json!({ "to": "ann" })).await;
    emit_payload(&desk, "1", json!({ "email": "bob" })).await;
    let mails = |text: &str| {
        let payload = Some(json!({ "to": text }));
        work(WorkSpec::Job(JobSpec { payload, ..job_spec("mail") }))
    };
    let running = desk.run_to(options("s"), mails("${ event.payload.email }"));
    until_started(&desk.store, "mail", 1).await;
    let dead = desk.store.dead_events(Some("s"), None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert!(dead[0].why.contains("/payload/to: "), "{}", dead[0].why);
    running.stop().await;
    let running = desk.run_to(
        options("s"),
        mails("${ has(event.payload.email) ? event.payload.email : event.payload.to }"),
    );
    desk.store.change_dead("s", bad.id, DeadVerb::Retry).await.unwrap();
    until_started(&desk.store, "mail", 2).await;
    running.stop().await;
    assert!(desk.store.dead_events(Some("s"), None, 10).await.unwrap().is_empty());
}

pub(crate) async fn a_batch_whose_dag_is_missing_waits_for_it(desk: Desk) {
    desk.emit("1", 2).await;
    let spec = BatchSpec { dag: "settlement".to_owned(), key: None, input: None };
    let running = desk.run_to(options("s"), work(WorkSpec::Batch(spec)));
    wait::until("the aggregate is parked", || async {
        !desk.store.parked(Some("s"), None, 1).await.unwrap().is_empty()
    })
    .await;
    let parked = desk.store.parked(Some("s"), None, 10).await.unwrap();
    assert!(parked[0].why.contains("settlement"), "{}", parked[0].why);
    let dag = Definition::new("settlement").task("pay", Task::job("pay"));
    desk.store.define_dag(&Dag::check(dag).unwrap()).await.unwrap();
    let filter = BatchFilter { limit: 10, ..BatchFilter::default() };
    wait::until("both batches are started", || async {
        desk.store.batches(&filter).await.unwrap().len() == 2
    })
    .await;
    wait::until("nothing is parked", || async {
        desk.store.parked(Some("s"), None, 1).await.unwrap().is_empty()
    })
    .await;
    running.stop().await;
}

pub(crate) async fn a_bad_event_does_not_stop_the_others_of_its_wave(desk: Desk) {
    let small = json!({ "text": "x" });
    for order in 0..20 {
        emit_payload(&desk, &order.to_string(), small.clone()).await;
    }
    // A group has at most 200 bytes.
    let long = "g".repeat(300);
    let bad = emit_payload(&desk, "bad", json!({ "group": long })).await;
    let group = Some("${ has(event.payload.group) ? event.payload.group : event.aggregate_id }".to_owned());
    let spec = JobSpec { group, ..job_spec("bill") };
    let running = desk.run_to(options("s"), work(WorkSpec::Job(spec)));
    until_started(&desk.store, "bill", 20).await;
    wait::until("the bad event is a dead letter", || async {
        !desk.store.dead_events(Some("s"), None, 1).await.unwrap().is_empty()
    })
    .await;
    running.stop().await;
    assert_eq!(count(&desk.store, "bill").await, 20);
    assert_eq!(desk.store.dead_events(Some("s"), None, 1).await.unwrap()[0].event.id, bad.id);
}

pub(crate) async fn a_replay_starts_nothing_a_second_time(desk: Desk) {
    desk.emit("1", 3).await;
    let running = desk.run_to(options("s"), bills("bill"));
    until_started(&desk.store, "bill", 3).await;
    running.stop().await;
    let replay = Replay::Aggregate { aggregate: Aggregate::new("order", "1"), from: 1 };
    assert_eq!(desk.store.replay("s", &replay).await.unwrap(), 3);
    let running = desk.run_to(options("s"), bills("bill"));
    desk.emit("1", 1).await;
    until_started(&desk.store, "bill", 4).await;
    running.stop().await;
    assert_one_job_for_each(&desk.store, "bill", 1, 4).await;
}

pub(crate) async fn the_end_of_a_job_starts_the_next_one(desk: Desk) {
    let mut settings = options("s");
    let changes = Changes { kinds: vec!["pay".to_owned()], dags: Vec::new() };
    settings.subscription = settings.subscription.changes(changes);
    settings.subscription.filter.event_types = vec!["milepost.job.canceled".to_owned()];
    let payload = Some(json!({ "of": "${ event.payload.job_id }" }));
    let spec = JobSpec { payload, group: None, ..job_spec("refund") };
    let running = desk.run_to(settings, work(WorkSpec::Job(spec)));
    let canceled = wait_for_recording(&desk).await;
    until_started(&desk.store, "refund", 1).await;
    running.stop().await;
    let refund = jobs(&desk.store, "refund").await.remove(0);
    assert!(refund.payload.get().contains(&canceled.to_string()), "{}", refund.payload);
}

/// Cancels jobs until the change of one is an event. Returns that job.
async fn wait_for_recording(desk: &Desk) -> milepost_core::ident::JobId {
    use milepost_core::event::listing::EventFilter;
    loop {
        let job = NewJob::new("pay", &()).unwrap();
        desk.store.enqueue(&job).await.unwrap();
        desk.store.operate(job.id, &Operation::new(Verb::Cancel)).await.unwrap();
        let filter = EventFilter {
            aggregate: Some(Aggregate::new("milepost.job.pay", job.id.to_string())),
            limit: 10,
            ..EventFilter::default()
        };
        let events = desk.store.events(&filter).await.unwrap();
        if events.iter().any(|logged| logged.event.event_type == "milepost.job.canceled") {
            return job.id;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
