//! Job search by content; each call searches a bounded number of jobs.

use std::time::Duration;

use milepost_core::finish::{End, Failure};
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, StartAt};
use milepost_core::port::Operation;
use milepost_core::search::{JobFilter, PayloadMatch, SCAN_MAX};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::json;

use milepost_testkit::scene::{KIND, Scene, retry};

async fn find(scene: &Scene, search: JobFilter) -> Vec<JobId> {
    let found = scene.store.search_jobs(&search).await.expect("found");
    found.rows.into_iter().map(|row| row.id).collect()
}

fn payload(text: &str) -> JobFilter {
    JobFilter { payload: Some(PayloadMatch::parse(text).expect("path=value")), ..JobFilter::default() }
}

async fn job(scene: &Scene, payload: serde_json::Value) -> JobId {
    scene.enqueue(NewJob::new(KIND, &payload).expect("a job")).await
}

pub async fn jobs_are_found_by_what_is_in_their_payload(scene: Scene) {
    let one =
        job(&scene, json!({ "customer": { "id": 42, "name": "Ada \"A\" L." }, "lines": [{ "sku": "x" }] }))
            .await;
    let two = job(&scene, json!({ "customer": { "id": "42" }, "gone": null, "vip": true })).await;
    let three = job(&scene, json!("customer")).await;
    for (text, expected) in [
        ("customer.id=42", vec![one]),
        ("customer.id=\"42\"", vec![two]),
        ("customer.name=Ada \"A\" L.", vec![one]),
        ("lines.0.sku=x", vec![one]),
        ("lines.1.sku=x", vec![]),
        ("vip=true", vec![two]),
        ("gone=null", vec![two]),
        ("customer={\"id\":\"42\"}", vec![two]),
        ("cust\"omer=1", vec![]),
    ] {
        assert_eq!(find(&scene, payload(text)).await, expected, "{text}");
    }
    let both = JobFilter { state: Some(JobState::Pending), ..JobFilter::default() };
    assert_eq!(find(&scene, both).await, [three, two, one]);
}

async fn fail(scene: &Scene, kind: &str, code: &str, message: &str) -> JobId {
    let job = NewJob::new(kind, &json!({})).expect("a job").key(code.replace('\0', ""));
    let id = scene.enqueue(job).await;
    let run = scene.claim(1).await.remove(0);
    assert_eq!(run.run.job, id);
    let failure = Failure { code: code.to_owned(), message: message.to_owned() };
    scene.finish(&run, End::Fail { failure }).await;
    id
}

pub async fn the_last_change_and_the_last_failure_of_many_are_told(scene: Scene) {
    let fresh = scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Succeed { result: None }).await;
    let stopped = fail(&scene, "other", "disk_full", "No space left").await;
    let abort = Operation { note: Some("enough".to_owned()), ..Operation::new(Verb::Cancel) };
    scene.operate(stopped, Operation::new(Verb::RetryNow)).await.expect("retried");
    scene.operate(stopped, abort).await.expect("canceled");
    let jobs = [fresh, stopped, JobId::new()];
    let mut changes = scene.store.last_changes(&jobs).await.expect("changes");
    changes.sort_by_key(|entry| entry.pos);
    let told: Vec<_> = changes.iter().map(|entry| (entry.job, entry.verb, entry.note.as_deref())).collect();
    assert_eq!(told, [(fresh, Verb::Succeed, None), (stopped, Verb::Cancel, Some("enough"))]);
    let failures = scene.store.last_failures(&jobs).await.expect("failures");
    let told: Vec<_> =
        failures.iter().map(|it| (it.job, it.code.as_deref(), it.message.as_deref())).collect();
    assert_eq!(told, [(stopped, Some("disk_full"), Some("No space left"))]);
}

pub async fn a_job_shows_its_last_failure_in_full(scene: Scene) {
    let message = "x".repeat(2000);
    let failed = fail(&scene, "other", "exec_1", &message).await;
    let fresh = scene.enqueue(Scene::job()).await;
    let view = serde_json::to_value(scene.view(failed).await).expect("serialized");
    let shown = &view["last_failure"];
    assert_eq!((&shown["code"], &shown["message"]), (&json!("exec_1"), &json!(message)));
    assert!(shown["at"].is_string() && shown.get("job").is_none(), "{shown}");
    let listed = scene.store.last_failures(&[failed]).await.expect("failures");
    assert_eq!(
        listed[0].message.as_ref().map(String::len),
        Some(500),
        "lists contain the beginning of the message"
    );
    assert_eq!(scene.view(fresh).await.last_failure, None);
}

pub async fn a_failure_with_a_nul_is_shown_whole(scene: Scene) {
    let failed = fail(&scene, "other", "exec\0_1", "before\0after").await;
    let shown = scene.view(failed).await.last_failure.expect("a failure");
    assert_eq!(
        (shown.code.as_deref(), shown.message.as_deref()),
        (Some("exec\u{fffd}_1"), Some("before\u{fffd}after"))
    );
}

pub async fn jobs_are_found_by_kind_state_queue_key_and_error(scene: Scene) {
    let done = scene.enqueue(Scene::job()).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Succeed { result: None }).await;
    let full = fail(&scene, "other", "disk_full", "No space left on device").await;
    let slow = fail(&scene, "other", "timeout", "took 30 s").await;
    let all = JobFilter::default;
    assert_eq!(find(&scene, JobFilter { error: Some("disk_full".to_owned()), ..all() }).await, [full]);
    assert_eq!(find(&scene, JobFilter { error: Some("SPACE left".to_owned()), ..all() }).await, [full]);
    assert_eq!(find(&scene, JobFilter { error: Some("0 s".to_owned()), ..all() }).await, [slow]);
    assert_eq!(find(&scene, JobFilter { error: Some("no such".to_owned()), ..all() }).await, []);
    let failed = JobFilter { state: Some(JobState::Failed), ..all() };
    assert_eq!(find(&scene, failed.clone()).await, [slow, full]);
    assert_eq!(find(&scene, JobFilter { error: Some("timeout".to_owned()), ..failed.clone() }).await, [slow]);
    assert_eq!(find(&scene, JobFilter { key: Some("timeout".to_owned()), ..failed.clone() }).await, [slow]);
    assert_eq!(find(&scene, JobFilter { state: Some(JobState::Succeeded), ..all() }).await, [done]);
    assert_eq!(find(&scene, JobFilter { kind: Some("other".to_owned()), ..all() }).await, [slow, full]);
    assert_eq!(
        find(&scene, JobFilter { queue: Some("default".to_owned()), ..all() }).await,
        [slow, full, done]
    );
    assert_eq!(find(&scene, JobFilter { queue: Some("nowhere".to_owned()), ..all() }).await, []);
    assert_eq!(find(&scene, JobFilter { kind: Some("nothing".to_owned()), ..all() }).await, []);
}

pub async fn jobs_are_found_in_every_state(scene: Scene) {
    let later = scene.enqueue(Scene::job().start(StartAt::After(Duration::from_secs(3600)))).await;
    let [done, retried, failed, running, canceled] = {
        let mut jobs = Vec::new();
        for _ in 0..5 {
            jobs.push(scene.enqueue(Scene::job()).await);
        }
        <[JobId; 5]>::try_from(jobs).unwrap()
    };
    scene.operate(canceled, Operation::new(Verb::Cancel)).await.unwrap();
    let failure = || Failure { code: "a".to_owned(), message: "a".to_owned() };
    for claimed in scene.claim(4).await {
        let end = match claimed.run.job {
            job if job == done => End::Succeed { result: None },
            job if job == retried => retry(Duration::from_secs(3600)),
            job if job == failed => End::Fail { failure: failure() },
            _ => continue,
        };
        scene.finish(&claimed, end).await;
    }
    for (state, job) in [
        (JobState::Pending, later),
        (JobState::Running, running),
        (JobState::Succeeded, done),
        (JobState::RetryWait, retried),
        (JobState::Failed, failed),
        (JobState::Canceled, canceled),
    ] {
        let of = || JobFilter { state: Some(state), ..JobFilter::default() };
        assert_eq!(find(&scene, of()).await, [job], "{state}");
        assert_eq!(find(&scene, JobFilter { kind: Some("none".to_owned()), ..of() }).await, [], "{state}");
        assert_eq!(find(&scene, JobFilter { before: Some(job), ..of() }).await, [], "{state}");
    }
    assert_eq!(find(&scene, JobFilter::default()).await.len(), 6);
}

pub async fn a_key_finds_all_that_ever_had_it(scene: Scene) {
    let key = |kind| NewJob::new(kind, &json!({})).expect("a job").key("order-17");
    let first = scene.enqueue(key(KIND)).await;
    let run = scene.claim(1).await.remove(0);
    scene.finish(&run, End::Succeed { result: None }).await;
    let other = scene.enqueue(key("other")).await;
    // More jobs than one search examines. A lookup by key needs no search.
    for _ in 0..2 {
        scene.enqueue_many(SCAN_MAX as usize / 2 + 1, KIND, json!({})).await;
    }
    let of = || JobFilter { key: Some("order-17".to_owned()), ..JobFilter::default() };
    assert_eq!(find(&scene, of()).await, [other, first]);
    assert_eq!(find(&scene, JobFilter { kind: Some("other".to_owned()), ..of() }).await, [other]);
    assert_eq!(find(&scene, JobFilter { state: Some(JobState::Succeeded), ..of() }).await, [first]);
    assert_eq!(find(&scene, JobFilter { before: Some(other), ..of() }).await, [first]);
    assert_eq!(find(&scene, JobFilter { key: Some("order-1".to_owned()), ..of() }).await, []);
}

pub async fn a_search_within_a_time_finds_what_is_of_it(scene: Scene) {
    let before = scene.store.clock().await.unwrap().now;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let one = fail(&scene, KIND, "a", "a").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let between = scene.store.clock().await.unwrap().now;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let two = fail(&scene, KIND, "b", "b").await;
    let failed = || JobFilter { state: Some(JobState::Failed), ..JobFilter::default() };
    for all in [JobFilter::default as fn() -> JobFilter, failed] {
        assert_eq!(find(&scene, JobFilter { created_from: Some(between), ..all() }).await, [two]);
        assert_eq!(find(&scene, JobFilter { created_before: Some(between), ..all() }).await, [one]);
        assert_eq!(find(&scene, JobFilter { failed_from: Some(between), ..all() }).await, [two]);
        assert_eq!(find(&scene, JobFilter { failed_from: Some(before), ..all() }).await, [two, one]);
        let window = JobFilter { created_from: Some(before), created_before: Some(between), ..all() };
        assert_eq!(find(&scene, window).await, [one]);
    }
}

pub async fn a_search_goes_on_where_it_stopped(scene: Scene) {
    let first = job(&scene, json!({ "n": "wanted" })).await;
    for _ in 0..10 {
        scene.enqueue_many(SCAN_MAX as usize / 10, KIND, json!({ "n": "other" })).await;
    }
    let last = job(&scene, json!({ "n": "wanted" })).await;
    let search = JobFilter { limit: 1, ..payload("n=wanted") };
    let page = scene.store.search_jobs(&search).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [last]);
    let short = JobFilter { scan: Some(10), before: page.next, ..search.clone() };
    let stopped = scene.store.search_jobs(&short).await.unwrap();
    let tenth = scene.store.search_jobs(&JobFilter { limit: 11, ..JobFilter::default() }).await.unwrap().next;
    assert_eq!(
        (stopped.rows.len(), stopped.next),
        (0, tenth),
        "the search stopped at its limit of examined jobs"
    );
    let page = scene.store.search_jobs(&JobFilter { before: page.next, ..search.clone() }).await.unwrap();
    assert!(page.rows.is_empty(), "the search stopped at its limit of examined jobs: {page:?}");
    let page = scene.store.search_jobs(&JobFilter { before: page.next, ..search.clone() }).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.id).collect::<Vec<_>>(), [first]);
    let page = scene.store.search_jobs(&JobFilter { before: page.next, ..search }).await.unwrap();
    assert!(page.rows.is_empty() && page.next.is_none(), "{page:?}");
}
