//! State changes as events: one event for each selected change, in order, and no others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use milepost_core::event::listing::{EventFilter, EventPage};
use milepost_core::event::{
    Aggregate, Begin, Changes, Event, NewEvent, PageSize, Publisher, Subscription, SubscriptionFilter,
};
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::history::HistoryEntry;
use milepost_core::ident::{JobId, PublisherId};
use milepost_core::port::{Operation, Store};
use milepost_core::transition::Verb;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{rescue, retention};
use milepost_testkit::examine::examine;
use milepost_testkit::scene::{KIND, Scene, failure, retry};
use milepost_testkit::wait;

const LONG: Duration = Duration::from_secs(3600);

/// Makes a subscription, which is created if it does not exist, select changes of jobs of these kinds.
pub async fn want_kinds(store: &Arc<dyn Store>, subscription: &str, kinds: &[&str]) {
    want(store, subscription, of(kinds)).await;
}

/// Makes a subscription, which is created if it does not exist, select these changes.
pub async fn want(store: &Arc<dyn Store>, subscription: &str, changes: Changes) {
    store.subscribe(subscription, Begin::Beginning).await.expect("subscribed");
    let changes = &changes;
    wait::until("changes are recorded", || async {
        store.record_changes(subscription, changes).await.expect("recorded")
    })
    .await;
}

fn of(kinds: &[&str]) -> Changes {
    Changes { kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(), dags: Vec::new() }
}

/// Returns the events of an aggregate, in order.
pub async fn events_of(store: &Arc<dyn Store>, kind: &str, id: impl ToString) -> Vec<Event> {
    let aggregate = Some(Aggregate::new(kind, id.to_string()));
    let filter = EventFilter { aggregate, page: EventPage::After(0), limit: 1_000, ..EventFilter::default() };
    store.events(&filter).await.expect("listed").into_iter().map(|logged| logged.event).collect()
}

/// Returns the whole log, in order.
async fn log(store: &Arc<dyn Store>) -> Vec<Event> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let filter = EventFilter { page: EventPage::After(after), limit: 1_000, ..EventFilter::default() };
        let page = store.events(&filter).await.expect("listed");
        let Some(last) = page.last() else { return all };
        after = last.pos;
        all.extend(page.into_iter().map(|logged| logged.event));
    }
}

/// Returns the expected payload of a change event.
fn payload(job: &milepost_core::listing::JobRow, entry: &HistoryEntry) -> Value {
    let mut payload = json!({
        "job_id": job.id, "kind": job.kind, "queue": job.queue, "key": job.key,
        "verb": entry.verb, "from": entry.from, "to": entry.to, "attempt": entry.attempt, "run_token": entry.token,
        "worker_id": entry.worker, "ready_at": entry.ready_at, "error_code": entry.error_code,
        "error_message": entry.error_message, "note": entry.note, "at": entry.at,
    });
    payload.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    payload
}

/// Returns the payload of an event, with times in the format of the library.
fn said(event: &Event) -> Value {
    let mut payload: Value = serde_json::from_str(event.payload.get()).expect("JSON");
    for time in ["at", "ready_at"] {
        if let Some(value) = payload.get_mut(time) {
            let read: jiff::Timestamp = value.as_str().expect("a time").parse().expect("a time");
            *value = json!(read);
        }
    }
    payload
}

/// Asserts that the events of a job match its history one for one. Returns their number.
pub async fn assert_emitted(scene: &Scene, job: JobId) -> usize {
    let row = scene.view(job).await.row;
    let (history, events) =
        (scene.history(job).await, events_of(&scene.store, &format!("milepost.job.{}", row.kind), job).await);
    assert_eq!(events.len(), history.len(), "{events:#?}\n{history:#?}");
    for (n, (event, entry)) in (1..).zip(events.iter().zip(&history)) {
        assert_eq!(event.sequence, n, "{events:#?}");
        assert_eq!(event.event_type, format!("milepost.job.{}", entry.to));
        assert_eq!(event.id.0.get_version_num(), 7);
        let mut said = said(event);
        for of_batch in ["batch_id", "task"] {
            said.as_object_mut().expect("an object").remove(of_batch);
        }
        assert_eq!(said, payload(&row, entry));
    }
    events.len()
}

pub async fn changes_of_a_job_are_its_history_as_events(scene: Scene) {
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let id = scene.enqueue(Scene::job().key("order \"17\" é")).await;
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, retry(Duration::from_millis(1))).await;
    scene.operate(id, Operation::new(Verb::RetryNow)).await.unwrap();
    let job = scene.claim(1).await.remove(0);
    let failure = Failure { message: "it said\n\t\"no\\\" – é".to_owned(), ..failure() };
    scene.finish(&job, End::Fail { failure }).await;
    scene.operate(id, Operation::new(Verb::RetryNow).note("fixed it: é")).await.unwrap();
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Succeed { result: None }).await;
    assert_eq!(assert_emitted(&scene, id).await, 9);
    scene.operate(id, Operation::new(Verb::Rerun)).await.unwrap();
    scene.operate(id, Operation::new(Verb::Cancel)).await.unwrap();
    assert_eq!(assert_emitted(&scene, id).await, 11);
    assert_eq!(log(&scene.store).await.len(), 11, "and there are no other events");
}

pub async fn changes_of_groups_and_stops_are_told(scene: Scene) {
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let jobs = [scene.enqueue(Scene::job().group("g")).await, scene.enqueue(Scene::job().group("g")).await];
    let first = scene.claim(1).await.remove(0);
    scene.operate(jobs[0], Operation::new(Verb::Abort).grace(LONG)).await.unwrap();
    scene.finish(&first, End::Abort).await;
    let second = scene.claim(1).await.remove(0);
    assert_eq!(second.run.job, jobs[1], "the next job has the slot");
    let later = End::Yield { delay: Duration::from_secs(60), note: "later".to_owned() };
    scene.finish(&second, later).await;
    scene.operate(jobs[0], Operation::new(Verb::Cancel)).await.unwrap();
    let (_, held) = rescue::mortal(&scene, vec![Scene::job()]).await;
    rescue::rescue(&scene, 1).await;
    for job in [jobs[0], jobs[1], held[0].run.job] {
        assert_emitted(&scene, job).await;
    }
}

pub async fn changes_of_many_jobs_are_complete_under_several_workers(scene: Scene) {
    const JOBS: usize = 1_500;
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let mut workers = JoinSet::new();
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let (scene, done) = (Scene::on(scene.store.clone()).await, done.clone());
        workers.spawn(async move {
            while done.load(Ordering::SeqCst) < JOBS {
                let claimed = scene.claim(200).await;
                if claimed.is_empty() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                done.fetch_add(claimed.len(), Ordering::SeqCst);
                let end = || End::Succeed { result: None };
                let ends: Vec<Finish> = claimed
                    .iter()
                    .map(|job| Finish { run: job.run, end: end(), grouped: false, task: false })
                    .collect();
                scene.store.finish_many(scene.worker, &ends).await.expect("answered");
            }
        });
    }
    for _ in 0..JOBS / 500 {
        scene.enqueue_many(500, KIND, json!({})).await;
    }
    tokio::time::timeout(wait::LIMIT, workers.join_all()).await.expect("timed out before all jobs were done");
    assert_eq!(done.load(Ordering::SeqCst), JOBS);
    let mut told: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    for event in log(&scene.store).await {
        told.entry(event.aggregate.id).or_default().push((event.sequence, event.event_type));
    }
    let life = ["pending", "running", "succeeded"].map(|state| format!("milepost.job.{state}"));
    let life: Vec<(i64, String)> = (1..).zip(life).collect();
    assert_eq!(told.len(), JOBS);
    assert!(told.values().all(|events| *events == life), "{told:#?}");
}

pub async fn kinds_that_nobody_wants_make_no_events(scene: Scene) {
    scene.enqueue(Scene::job()).await;
    assert!(log(&scene.store).await.is_empty());
    want_kinds(&scene.store, "audit", &["other"]).await;
    scene.enqueue(Scene::job()).await;
    assert_eq!(scene.claim(10).await.len(), 2);
    assert!(log(&scene.store).await.is_empty());
    let wanted = NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap();
    scene.store.emit(&wanted).await.unwrap();
    let [other] = scene.enqueue_many(1, "other", json!({})).await[..] else { panic!("one") };
    assert_eq!(assert_emitted(&scene, other).await, 1);
    assert_eq!(log(&scene.store).await.len(), 2);
}

/// Returns the aggregates of the events that a subscription receives.
async fn read(store: &Arc<dyn Store>, subscription: &str, filter: SubscriptionFilter) -> Vec<String> {
    let publisher = Publisher {
        id: PublisherId::new(),
        label: "here:1".to_owned(),
        subscription: subscription.to_owned(),
        filter,
        lease: LONG,
    };
    let mut reader = store.reader(publisher);
    reader.balance().await.expect("held");
    let page = reader.page(PageSize { events_max: 1_000, bytes_max: 1 << 20 }).await.expect("read");
    let mut kinds: Vec<String> = page.events.into_iter().map(|event| event.aggregate.kind).collect();
    kinds.sort();
    kinds
}

pub async fn each_subscription_gets_the_changes_that_it_wants(scene: Scene) {
    let store = &scene.store;
    want_kinds(store, "one", &[KIND]).await;
    want_kinds(store, "both", &[KIND, "other"]).await;
    store.subscribe("emitted", Begin::Beginning).await.unwrap();
    scene.enqueue(Scene::job()).await;
    scene.enqueue_many(1, "other", json!({})).await;
    store.emit(&NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap()).await.unwrap();
    let filter = |kinds: &[&str]| Subscription::new("s").changes(of(kinds)).filter;
    assert_eq!(read(store, "one", filter(&[KIND])).await, ["milepost.job.test"]);
    let both = read(store, "both", filter(&[KIND, "other"])).await;
    assert_eq!(both, ["milepost.job.other", "milepost.job.test"]);
    assert_eq!(read(store, "emitted", SubscriptionFilter::default()).await, ["order"]);
}

pub async fn changes_are_recorded_as_long_as_somebody_wants_them(scene: Scene) {
    let store = &scene.store;
    let logged = async || log(store).await.len();
    for subscription in ["one", "two"] {
        want_kinds(store, subscription, &[KIND]).await;
    }
    let id = scene.enqueue(Scene::job()).await;
    assert_eq!(logged().await, 1, "one event for both subscriptions");
    assert!(store.remove_subscription("one").await.unwrap());
    let [job] = &scene.claim(1).await[..] else { panic!("one") };
    assert_eq!(logged().await, 2, "the other subscription still records changes");
    want_kinds(store, "two", &["other"]).await;
    scene.finish(job, retry(Duration::ZERO)).await;
    assert_eq!(logged().await, 2, "changes of this kind are no longer recorded");
    want_kinds(store, "two", &[KIND]).await;
    let [job] = &scene.claim(1).await[..] else { panic!("one") };
    assert_eq!(logged().await, 3, "the sequence continues");
    assert!(store.remove_subscription("two").await.unwrap());
    scene.finish(job, End::Succeed { result: None }).await;
    let events = events_of(store, "milepost.job.test", id).await;
    assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(events[2].event_type, "milepost.job.running");
}

pub async fn changes_for_nobody_are_refused(scene: Scene) {
    let refused = scene.store.record_changes("nobody", &of(&[KIND])).await.unwrap_err();
    assert!(refused.to_string().contains("no subscription"), "{refused}");
    scene.enqueue(Scene::job()).await;
    assert!(log(&scene.store).await.is_empty());
}

pub async fn a_refused_call_leaves_no_events(scene: Scene) {
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let bad = Scene::job().queue("");
    scene.store.enqueue_many(&[Scene::job(), bad]).await.unwrap_err();
    assert!(log(&scene.store).await.is_empty());
    let job = scene.enqueue(Scene::job().key("k")).await;
    assert!(scene.try_enqueue(Scene::job().key("k")).await.unwrap().duplicate);
    scene.operate(job, Operation::new(Verb::Resume)).await.unwrap_err();
    assert_eq!(assert_emitted(&scene, job).await, 1);
}

pub async fn a_forgotten_job_leaves_its_events_and_no_damage(scene: Scene) {
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let job = Scene::job();
    let id = job.id;
    scene.enqueue(job.clone()).await;
    let claimed = scene.claim(1).await.remove(0);
    scene.finish(&claimed, End::Succeed { result: None }).await;
    retention::prune(&scene, &retention::NOTHING_KEPT).await;
    assert!(scene.store.job(id).await.unwrap().is_none());
    let sequences = async || -> Vec<i64> {
        events_of(&scene.store, "milepost.job.test", id).await.iter().map(|event| event.sequence).collect()
    };
    assert_eq!(sequences().await, [1, 2, 3]);
    assert_eq!(examine(&scene.store).await, []);
    for &check in &scene.store.checks() {
        assert_eq!(scene.store.repair_rows(check, 100).await.unwrap(), 0, "{check:?}");
    }
    scene.enqueue(job).await;
    assert_eq!(sequences().await, [1, 2, 3, 4], "the sequence continues for another job with the same id");
    assert_eq!(examine(&scene.store).await, []);
}
