//! Tests of bulk jobs: reads, start, settings, operations, and retry of failures.

use std::time::Duration;

use milepost_core::bulk::definition::{Definition, Labels};
use milepost_core::bulk::key::Key;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Parts, Survey};
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Finish};
use milepost_core::ident::{Run, WorkerId};
use milepost_core::schedule::Source;
use milepost_core::worker::NewWorker;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Answer, Place};

async fn define(place: &Place, name: &str) {
    let labels = Labels { r#type: Some("push".to_owned()), category: None };
    let definition = Definition { labels, ..Definition::new(name) };
    place.store.put_bulk(&definition, Source::Operator).await.unwrap();
}

async fn started(place: &Place, body: Value) -> String {
    let answer = place.ask(Method::POST, "/v1/bulk-runs", body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}

/// Claims the first run of a bulk job.
async fn claimed(place: &Place, name: &str) -> (WorkerId, Run) {
    let (queues, kinds) = (vec!["bulk".to_owned()], vec![name.to_owned()]);
    let lease = Duration::from_secs(60);
    let worker = NewWorker {
        name: "w".to_owned(),
        queues: queues.clone(),
        kinds: kinds.clone(),
        lease,
        ..NewWorker::default()
    };
    let worker = place.store.register_worker(&worker).await.unwrap();
    let claim = Claim { worker, claim_id: 1, queues, kinds, limit: 1, thorough: true };
    (worker, place.store.claim(&claim).await.unwrap()[0].run)
}

fn key(n: u64) -> Key {
    Key(vec![json!(n.to_string())])
}

/// Applies a chunk of three targets, of which one fails.
async fn chunk(place: &Place, run: Run) {
    let store = place.store.as_ref();
    store.take_bulk(run, "", "1:1:").await.unwrap();
    store.freeze_bulk(run, &Survey { upper: Some(key(9)), total: None }).await.unwrap();
    store.look_bulk(run, 3).await.unwrap();
    let mut parts = Parts { targets: 3, cursor: Some(key(3)), ..Parts::default() };
    parts.fail(key(2), "23505".to_owned(), "twice".to_owned());
    let step = Step { from: None, parts, rows: 3, took: Duration::from_millis(5) };
    store.advance_bulk(run, &step).await.unwrap();
}

pub(crate) async fn bulk_jobs_are_started_and_listed(place: Place) {
    define(&place, "popular").await;
    define(&place, "near").await;
    let definitions = place.ask(Method::GET, "/v1/bulk-definitions", Value::Null).await.body;
    assert_eq!((&definitions[0]["name"], &definitions[1]["type"]), (&json!("near"), &json!("push")));
    let shown = place.ask(Method::GET, "/v1/bulk-definitions/near", Value::Null).await.body;
    assert_eq!(shown["group"], "near");
    let body = json!({"name": "popular", "parameters": {"topic": 4}, "key": "k", "priority": 1});
    let first = started(&place, body.clone()).await;
    let again = place.ask(Method::POST, "/v1/bulk-runs", body).await;
    assert_eq!((again.status, again.body), (StatusCode::OK, json!({"id": first, "duplicate": true})));
    let second = started(&place, json!({"name": "popular"})).await;
    let job = place.get(&format!("/v1/jobs/{first}")).await.body;
    assert_eq!((&job["payload"], &job["priority"]), (&json!({"topic": 4}), &json!(1)));
    let runs = place.ask(Method::GET, "/v1/bulk-runs?name=popular&limit=1", Value::Null).await.body;
    let ids: Vec<&str> =
        runs["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&first, &second], "the first page has all waiting runs: {runs}");
    assert_eq!(runs.get("next_cursor"), None);
}

pub(crate) async fn a_start_of_a_bulk_job_is_repeated_under_its_idempotency_key(place: Place) {
    define(&place, "popular").await;
    let start = |topic: u32| {
        let body = json!({"name": "popular", "parameters": {"topic": topic}});
        place.send(place.request(Method::POST, "/v1/bulk-runs").header("Idempotency-Key", "b").json(&body))
    };
    let first = start(1).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(start(1).await.body["id"], first.body["id"]);
    assert_eq!(start(2).await.code(), "idempotency_key_taken");
}

pub(crate) async fn the_list_of_runs_goes_on_with_those_that_are_over(place: Place) {
    define(&place, "popular").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(started(&place, json!({"name": "popular"})).await);
    }
    for id in &ids[..3] {
        place.ask(Method::POST, &format!("/v1/bulk-runs/{id}/operate"), json!({"operation": "cancel"})).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = place.ask(Method::GET, &format!("/v1/bulk-runs?limit=1{cursor}"), Value::Null).await.body;
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let newest_first = [&ids[2], &ids[1], &ids[0]];
    assert_eq!(seen[2..].iter().collect::<Vec<_>>(), newest_first);
    assert_eq!(seen.len(), 5, "each once");
}

/// Starts a run that has applied a chunk with one failed target. Returns its path, the worker and the run.
async fn under_way(place: &Place) -> (String, WorkerId, Run) {
    define(place, "popular").await;
    let id = started(place, json!({"name": "popular", "parameters": {"topic": 4}})).await;
    let (worker, run) = claimed(place, "popular").await;
    chunk(place, run).await;
    (format!("/v1/bulk-runs/{id}"), worker, run)
}

/// Starts a run and aborts it after a target has failed. Returns its path.
pub(crate) async fn stopped(place: &Place) -> String {
    let (path, worker, run) = under_way(place).await;
    let abort = place.ask(Method::POST, &format!("{path}/operate"), json!({"operation": "abort"})).await;
    assert_eq!(abort.status, StatusCode::OK, "{abort:?}");
    let end = Finish { run, end: End::Abort, grouped: true, task: false };
    place.store.finish_many(worker, &[end]).await.unwrap();
    path
}

pub(crate) async fn a_run_is_looked_at_and_steered(place: Place) {
    let (path, ..) = under_way(&place).await;
    let run = place.ask(Method::GET, &path, Value::Null).await.body;
    assert_eq!((&run["done"], &run["failed"], &run["cursor"]), (&json!(2), &json!(1), &json!(["3"])));
    let failures = place.ask(Method::GET, &format!("{path}/failures"), Value::Null).await.body;
    assert_eq!(
        (&failures["items"][0]["key"], &failures["items"][0]["code"]),
        (&json!(["2"]), &json!("23505"))
    );
    let set = |body: Value| async { place.ask(Method::PATCH, &format!("{path}/settings"), body).await };
    assert_eq!(set(json!({"rows_per_s": 500.0})).await.status, StatusCode::OK);
    let all = set(json!({"duty": 0.25, "priority": 1})).await.body;
    assert_eq!((&all["rows_per_s"], &all["duty"]), (&json!(500.0), &json!(0.25)));
    let all = set(json!({"rows_per_s": 0.5})).await.body;
    assert_eq!(all["duty"], 0.25, "omitted settings are unchanged");
    let all = set(json!({"as_defined": true, "rows_per_s": 7.0})).await.body;
    assert_eq!((&all["rows_per_s"], &all["duty"]), (&json!(7.0), &Value::Null));
}

pub(crate) async fn a_run_is_stopped_and_what_failed_is_tried_again(place: Place) {
    let (path, worker, claimed) = under_way(&place).await;
    let operate = |body: Value| async { place.ask(Method::POST, &format!("{path}/operate"), body).await };
    let early: Answer = operate(json!({"operation": "resume"})).await;
    assert_eq!((early.status, early.code()), (StatusCode::CONFLICT, "illegal_transition"));
    let aborted = operate(json!({"operation": "abort", "hard": true, "reason": "wrong text"})).await;
    assert_eq!(aborted.body, json!({"outcome": "stop_requested", "interrupted": false}));
    let end = Finish { run: claimed, end: End::Abort, grouped: true, task: false };
    place.store.finish_many(worker, &[end]).await.unwrap();
    assert_eq!(place.get(&path).await.body["state"], "aborted");
    let retry = place.ask(Method::POST, &format!("{path}/retry-failures"), Value::Null).await;
    let retry = format!("/v1/bulk-runs/{}", retry.body["id"].as_str().unwrap());
    let retry_of = place.ask(Method::GET, &retry, Value::Null).await.body["retry_of"].clone();
    assert!(path.ends_with(retry_of.as_str().unwrap()));
    let twice = place.ask(Method::POST, &format!("{path}/retry-failures"), Value::Null).await;
    assert_eq!((twice.status, twice.code()), (StatusCode::CONFLICT, "bulk_refused"));
    assert_ne!(operate(json!({"operation": "resume"})).await.body["outcome"], "aborted");
    assert_eq!(operate(json!({"operation": "cancel"})).await.body["outcome"], "canceled");
    let over = place.ask(Method::PATCH, &format!("{path}/settings"), json!({"duty": 0.5})).await;
    assert_eq!(over.code(), "bulk_refused");
}

pub(crate) async fn bulk_jobs_that_cannot_be_are_refused(place: Place) {
    define(&place, "popular").await;
    for (body, at) in [
        (json!({"name": "absent"}), "name"),
        (json!({"name": "\u{0}"}), "name"),
        (json!({"name": "popular", "parameters": []}), "parameters"),
        (json!({"name": "popular", "priority": 9}), "priority"),
        (json!({"name": "popular", "parameters": {"a": "\u{0}"}}), "parameters"),
        (json!({"name": "popular", "key": ""}), "key"),
        (json!({"name": "popular", "delay_ms": 1, "start_at": "2030-01-01T00:00:00Z"}), "start_at"),
    ] {
        let answer = place.ask(Method::POST, "/v1/bulk-runs", body.clone()).await;
        assert!(answer.status.is_client_error(), "{body}: {answer:?}");
        assert_eq!(answer.at(), at, "{body}: {answer:?}");
    }
    let id = started(&place, json!({"name": "popular"})).await;
    let settings = format!("/v1/bulk-runs/{id}/settings");
    let before = place.ask(Method::PATCH, &settings, json!({"chunk_rows_min": 10})).await;
    assert_eq!(before.status, StatusCode::OK, "{before:?}");
    for (body, at) in [
        (json!({}), ""),
        (json!({"duty": 2.0}), "duty"),
        (json!({"rows_per_s": -1.0}), "rows_per_s"),
        (json!({"chunk_ms": u64::MAX}), "chunk_ms"),
        (json!({"chunk_rows_min": 5, "chunk_rows_max": 1}), "chunk_rows_min"),
        (json!({"chunk_rows_max": 9}), "chunk_rows_max"),
        (json!({"chunk_rows_max": 0}), "chunk_rows_max"),
    ] {
        let answer = place.ask(Method::PATCH, &settings, body.clone()).await;
        assert_eq!(answer.at(), at, "{body}: {answer:?}");
        assert_eq!(
            (answer.status, answer.code()),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid_bulk"),
            "{body}"
        );
    }
    let plain = place.created(&json!({"kind": "k"})).await;
    for id in [plain.as_str(), "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c"] {
        for (method, path, body) in [
            (Method::GET, "", Value::Null),
            (Method::GET, "/failures", Value::Null),
            (Method::PATCH, "/settings", json!({"duty": 0.5})),
            (Method::POST, "/operate", json!({"operation": "abort"})),
            (Method::POST, "/retry-failures", Value::Null),
        ] {
            let answer = place.ask(method, &format!("/v1/bulk-runs/{id}{path}"), body).await;
            assert_eq!((answer.status, answer.code()), (StatusCode::NOT_FOUND, "no_such_bulk_run"), "{path}");
        }
    }
    for path in [
        "/v1/bulk-runs?limit=0",
        "/v1/bulk-runs?cursor=x",
        "/v1/bulk-runs?name=%00",
        "/v1/bulk-definitions/%00",
    ] {
        assert_eq!(place.ask(Method::GET, path, Value::Null).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(place.ask(Method::GET, "/v1/bulk-definitions/x", Value::Null).await.code(), "no_such_bulk");
}
