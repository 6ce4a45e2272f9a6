//! Test content of a store to be moved.

use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::traces::span;
use milepost_core::actions::job::{Inputs, JobAction};
use milepost_core::actions::{Action as _, Input};
use milepost_core::audit::Actor;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::finish::{End, Finished};
use milepost_core::job::duplicate::OnDuplicate;
use milepost_core::job::{NewJob, Priority, StartAt};
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::{JobEdit, Operation, Store};
use milepost_core::retention::{Keep, Pace, Retained, RetentionPeriod, RetentionPolicy};
use milepost_core::schedule::{Schedule, Spec};
use milepost_core::state::JobState;
use milepost_core::token::{NewToken, RANDOM_BYTES, Role, Secret, TokenScope};
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, Report};
use milepost_testkit::scene::{LONG, failure, register, retry};
use milepost_testkit::{Scene, wait};
use serde_json::json;

/// Fills a store with all kinds of content, including a job that is held by a dead worker.
pub(crate) async fn fill(store: &Arc<dyn Store>) {
    let scene = Scene::on(Arc::clone(store)).await;
    for &state in JobState::ALL {
        scene.job_left_in(state).await;
    }
    every_end(&scene).await;
    every_action(&scene).await;
    edited_and_followed(&scene).await;
    stopped_and_handed_on(&scene).await;
    limited(&scene).await;
    outlived(&scene).await;
    unusual(&scene).await;
    scheduled(&scene).await;
    emitted(&scene).await;
    let ci = NewToken::new("ci", Role::Operator, &token(), "ada@host");
    store.create_token(&NewToken { scope: Some(scope()), ..ci }).await.unwrap();
    let nobodys = || NewJob::new("nobody's", &()).unwrap();
    let ada = Actor::new("ada@host").unwrap().because(Some(UNICODE)).unwrap();
    store.acting_as(ada.clone()).pause_queue(UNICODE, true).await.unwrap();
    let ada = store.acting_as(ada);
    for made in ada.enqueue_many(&[nobodys(), nobodys()]).await.unwrap() {
        ada.operate(made.job, &Operation::new(Verb::Cancel)).await.unwrap();
    }
    let left = register(store, LONG).await;
    store.retire_worker(left).await.unwrap();
}

/// Returns the queues and kinds that the access token is limited to.
pub(crate) fn scope() -> TokenScope {
    TokenScope { queues: vec!["mail*".to_owned()], kinds: Vec::new() }
}

/// Returns the access token in the store.
pub(crate) fn token() -> Secret {
    Secret::of_random(&[7; RANDOM_BYTES])
}

/// Creates a key that outlives its job.
async fn outlived(scene: &Scene) {
    let old = scene.enqueue(Scene::job().key("outlives its job").priority(Priority::ALL[0])).await;
    let run = scene.claim(1).await.remove(0);
    assert_eq!(run.run.job, old);
    scene.finish(&run, End::Succeed { result: Some("{\"sent\": true}".to_owned()) }).await;
    // On SQLite, the newest history entry is never deleted.
    scene.enqueue(NewJob::new("other", &()).unwrap()).await;
    let policy = RetentionPolicy {
        succeeded: Keep::For(Duration::ZERO),
        keys: Keep::Forever,
        ..RetentionPolicy::FOREVER
    };
    wait::until("the job is deleted", || async {
        scene.store.prune(&policy, Pace { limit: 100, rest: 0 }).await.unwrap();
        scene.store.job(old).await.unwrap().is_none()
    })
    .await;
}

const UNICODE: &str = "Zoë 🦀 \u{202e}שלום\u{0301} \\u0000 \"quoted\"";

/// Creates unusual texts, a large payload, and paused queues.
async fn unusual(scene: &Scene) {
    let mut traced = NewJob::new("other", &json!({ UNICODE: [UNICODE, 1.5, -7, null] })).unwrap();
    traced.traceparent = Some(span());
    scene.enqueue(traced).await;
    scene.enqueue(NewJob::new("größe", &"x".repeat(1024 * 1024 - 2)).unwrap().key(UNICODE)).await;
    let succeeded = scene.enqueue(Scene::job().key("k").priority(Priority::ALL[0])).await;
    let run = scene.claim(1).await.remove(0);
    assert_eq!(run.run.job, succeeded);
    scene.finish(&run, End::Succeed { result: Some(json!({ "told": UNICODE }).to_string()) }).await;
    for (queue, paused) in [("night", true), ("day", true), ("day", false)] {
        scene.store.pause_queue(queue, paused).await.unwrap();
    }
    scene.enqueue(Scene::job().queue("night")).await;
}

/// Creates events of several aggregates with unusual JSON.
async fn emitted(scene: &Scene) {
    let event = |kind: &str, id: &str, payload: &str| {
        let payload = serde_json::value::RawValue::from_string(payload.to_owned()).unwrap();
        NewEvent { payload, ..NewEvent::new(Aggregate::new(kind, id), "order.paid", &()).unwrap() }
    };
    let events = [
        event("order", UNICODE, "{\"z\": 1.0,  \"a\": 1e2}")
            .header("traceparent", UNICODE.replace('\u{202e}', "")),
        event("order", "2", "[]").sequence(7),
        event("order", UNICODE, "null"),
        event("a", "2", "{}"),
    ];
    scene.store.emit_many(&events).await.unwrap();
}

/// Creates schedules of both sources; one of them is paused.
async fn scheduled(scene: &Scene) {
    let store = &scene.store;
    let spec = Spec::cron("0 3 * * *", "Europe/Berlin").unwrap();
    let nightly = Schedule::new("nightly", spec, Scene::job());
    store.put_schedule(&nightly, Source::Operator).await.unwrap();
    let spec = Spec::parse("@every 90s", "UTC").unwrap();
    store
        .put_schedule(&Schedule::new("paused", spec, Scene::job().group("g")), Source::Config)
        .await
        .unwrap();
    store.pause_schedule("paused").await.unwrap();
    store.run_schedule_now("nightly", None).await.unwrap();
}

/// Ends runs in every way, with checkpoints and messages, and retries the jobs by operators.
async fn every_end(scene: &Scene) {
    let operate = async |job, verb| scene.operate(job, Operation::new(verb).note("by hand")).await.unwrap();
    let first = || Scene::job().priority(Priority::ALL[0]);
    let reporting = scene.running(first()).await;
    let report = Report {
        run: reporting.run,
        progress: Some(Progress { done: 3, total: Some(10), message: Some("three of ten".to_owned()) }),
        checkpoint: Some("{\"at\": 3}".to_owned()),
    };
    assert_eq!(scene.store.report_many(&[report]).await.unwrap(), [true]);
    scene.finish(&reporting, retry(LONG)).await;
    let job = scene.running(first()).await;
    scene.finish(&job, retry(LONG)).await;
    operate(job.run.job, Verb::RetryNow).await;
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Yield { delay: Duration::ZERO, note: "later".to_owned() }).await;
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Abort).await;
    operate(job.run.job, Verb::Resume).await;
    let job = scene.claim(1).await.remove(0);
    assert_eq!(scene.finish(&job, End::Fail { failure: failure() }).await, Finished::Accepted);
    operate(job.run.job, Verb::Mark).await;
    operate(job.run.job, Verb::Rerun).await;
    operate(job.run.job, Verb::Cancel).await;
    let failed = scene.running(first()).await;
    scene.finish(&failed, End::Fail { failure: failure() }).await;
}

/// Performs each action of operators on a job of its own, and leaves none that is claimed later.
async fn every_action(scene: &Scene) {
    // Another job holds the slot that a release needs.
    for &action in JobAction::ALL.iter().filter(|&&action| action != JobAction::Release) {
        let state = action.usual_state();
        let (job, _) = scene.job_in(state).await;
        let verb = action.verb(state).expect("the usual state allows it");
        let needs_delay = action.description().inputs.contains(&Input::RequiredDelay);
        let delay = needs_delay.then_some(LONG);
        let inputs = Inputs { delay, grace: Some(Duration::ZERO), ..Inputs::default() };
        scene.operate(job, action.operation(verb, &inputs).unwrap()).await.unwrap();
        if scene.state(job).await == JobState::Pending {
            scene.operate(job, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
        }
    }
}

/// Creates a job that was edited, and one whose key a later job has taken.
async fn edited_and_followed(scene: &Scene) {
    let edited = scene.job_left_in(JobState::Failed).await;
    let edit = JobEdit { max_attempts: Some(3), note: Some("edited".into()), ..JobEdit::default() };
    scene.store.edit_job(edited, &edit).await.unwrap();
    let job = || Scene::job().key("followed").priority(Priority::ALL[0]).on_duplicate(OnDuplicate::replace());
    let first = scene.running(job()).await;
    scene.finish(&first, End::Succeed { result: None }).await;
    let next = scene.enqueue(job().start(StartAt::After(LONG))).await;
    assert_ne!(next, first.run.job);
}

/// Creates a slot that was passed on, with another job waiting for it, and a run that was asked to stop.
async fn stopped_and_handed_on(scene: &Scene) {
    let first = || Scene::job().priority(Priority::ALL[0]);
    let holder = scene.running(first().group("handed on")).await;
    let next = scene.enqueue(Scene::job().group("handed on")).await;
    scene.finish(&holder, End::Succeed { result: None }).await;
    assert_eq!(scene.state(next).await, JobState::Pending);
    scene.operate(next, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
    let waiting = scene.enqueue(Scene::job().group("handed on")).await;
    assert_eq!(scene.state(waiting).await, JobState::Blocked);
    let stopping = scene.running(first()).await;
    scene.operate(stopping.run.job, Operation::new(Verb::Cancel).grace(LONG).note("asked")).await.unwrap();
}

/// Creates limits of all kinds, with buckets in use and jobs that wait for them, and retention periods.
async fn limited(scene: &Scene) {
    let put = async |limit: Limit| scene.store.put_limit(&limit, Source::Operator).await.unwrap();
    put(Limit::kind("other", Rate::new(1.0 / 3.0, 7))).await;
    put(Limit::group("tenant:*").slots(3).rate(Rate::new(100.0 / 60.0, 2))).await;
    put(Limit::group("wide").slots(2)).await;
    put(Limit::group("open").rate(Rate::new(5000.0, 1000))).await;
    for (of, keep) in [(Retained::Failed, Keep::days(200)), (Retained::History, Keep::Forever)] {
        scene.store.put_retention(RetentionPeriod { of, keep }).await.unwrap();
    }
    for group in ["tenant:a", "wide", "open"] {
        for _ in 0..4 {
            scene.enqueue(NewJob::new("grouped", &group).unwrap().group(group)).await;
        }
    }
    let later = NewJob::new("grouped", &()).unwrap().group("later");
    scene.enqueue(later.start(StartAt::After(LONG))).await;
}

/// Creates `jobs` jobs, of which a third have ended.
pub(crate) async fn stock(store: &Arc<dyn Store>, jobs: usize) {
    let scene = Scene::on(Arc::clone(store)).await;
    scene.enqueue_many(jobs, "test", json!({ "to": "ada" })).await;
    for job in scene.claim(u32::try_from(jobs / 3).unwrap()).await {
        scene.finish(&job, End::Succeed { result: None }).await;
    }
}
