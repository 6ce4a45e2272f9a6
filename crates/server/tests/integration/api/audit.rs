//! Tests that changes by requests are audited, and of the audit API.

use futures::future::join_all;
use milepost_core::event::Begin;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::{Place, on_postgres};
use crate::api::{alerts, bulk};

/// Returns the whole audit log, newest first.
async fn audit(place: &Place) -> Vec<Value> {
    place.get("/v1/audit?limit=1000").await.body["items"].as_array().unwrap().clone()
}

pub(crate) async fn what_a_request_changes_is_audited(place: Place) {
    let job = place.created(&json!({"kind": "mail"})).await;
    let cancel = json!({"operation": "cancel", "reason": "twice"});
    place.post(&format!("/v1/jobs/{job}/operate"), &cancel).await;
    let pause = json!({"paused": true, "reason": "the mail server moves"});
    place.send(place.request(Method::PUT, "/v1/queues/mail").json(&pause)).await;
    let event = json!({"aggregate_type": "order", "aggregate_id": "1", "event_type": "order.paid"});
    place.post("/v1/events", &json!({"events": [event]})).await;
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    let pause = json!({"paused": true, "reason": "the broker moves"});
    place.send(place.request(Method::PUT, "/v1/subscriptions/orders").json(&pause)).await;
    place.post("/v1/jobs/create-many", &json!({"jobs": [{"kind": "a"}, {"kind": "b"}]})).await;

    let audit = audit(&place).await;
    let told: Vec<_> = audit.iter().rev().map(|it| (&it["what"], &it["subject"], &it["why"])).collect();
    let null = Value::Null;
    let expected = [
        ("job.create", json!(job), &null),
        ("job.cancel", json!(job), &json!("twice")),
        ("queue.pause", json!("mail"), &json!("the mail server moves")),
        ("event.emit", json!("order/1"), &null),
        ("subscription.pause", json!("orders"), &json!("the broker moves")),
        ("job.create", Value::Null, &null),
    ];
    assert_eq!(told.len(), expected.len(), "{audit:#?}");
    for ((what, subject, why), expected) in told.into_iter().zip(expected) {
        assert_eq!((what, subject, why), (&json!(expected.0), &expected.1, expected.2));
    }
    assert!(audit.iter().all(|entry| entry["who"] == "anonymous@127.0.0.1"), "{audit:#?}");
    assert_eq!(audit[4]["detail"]["before"]["state"], "pending");
    assert_eq!(audit[4]["detail"]["after"]["state"], "canceled");
}

pub(crate) async fn looking_and_what_is_refused_are_not_audited(place: Place) {
    place.get("/v1/jobs").await;
    let job = place.created(&json!({"kind": "mail", "key": "k"})).await;
    place.post("/v1/jobs", &json!({"kind": "mail", "key": "k"})).await;
    let operate = format!("/v1/jobs/{job}/operate");
    assert_eq!(place.post(&operate, &json!({"operation": "resume"})).await.code(), "illegal_transition");
    let long = json!({"operation": "cancel", "reason": "x".repeat(1001)});
    let refused = place.post(&operate, &long).await;
    assert_eq!((refused.code(), refused.at()), ("invalid_reason", "reason"));
    assert_eq!(audit(&place).await.len(), 1, "the job was created once");
}

pub(crate) async fn every_job_of_many_single_creates_stands_in_the_audit_once(place: Place) {
    let jobs = (0..60).map(|n| {
        let place = &place;
        async move { place.created(&json!({"kind": "mail", "payload": n})).await }
    });
    let mut jobs = join_all(jobs).await;
    let audit = audit(&place).await;
    let ids = |entry: &Value| entry["detail"]["after"]["ids"].as_array().unwrap().clone();
    let mut told: Vec<String> =
        audit.iter().flat_map(ids).map(|id| id.as_str().unwrap().to_owned()).collect();
    jobs.sort();
    told.sort();
    assert_eq!(told, jobs);
}

pub(crate) async fn the_audit_is_read_in_pages(place: Place) {
    for queue in ["a", "b", "c"] {
        let paused =
            place.request(Method::PUT, &format!("/v1/queues/{queue}")).json(&json!({"paused": true}));
        assert_eq!(place.send(paused).await.status, StatusCode::OK);
    }
    let first = place.get("/v1/audit?what=queue.pause&limit=2").await.body;
    assert_eq!((&first["items"][0]["subject"], &first["items"][1]["subject"]), (&json!("c"), &json!("b")));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = place.get(&format!("/v1/audit?what=queue.pause&limit=2&cursor={cursor}")).await.body;
    assert_eq!((&second["items"][0]["subject"], &second["next_cursor"]), (&json!("a"), &Value::Null));
    let found = place.get("/v1/audit?who=anonymous%40127.0.0.1&subject=b").await.body;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(place.get("/v1/audit?cursor=x").await.at(), "query cursor");
}

pub(crate) async fn every_noun_is_changed_in_somebodys_name(place: Place) {
    alerts::record(&place).await;
    let because = |mut body: Value| {
        body["reason"] = json!("as agreed");
        body
    };
    let expect = json!({"aggregate_type": "order", "aggregate_id": "1", "from_seq": 4});
    for (method, path, body, what) in [
        (Method::PUT, "/v1/schedules/s", because(json!({"every": "1h", "kind": "k"})), "schedule.put"),
        (Method::POST, "/v1/schedules/s/operate", because(json!({"operation": "pause"})), "schedule.pause"),
        (Method::POST, "/v1/schedules/s/operate", because(json!({"operation": "run_now"})), "schedule.run"),
        (Method::DELETE, "/v1/schedules/s", Value::Null, "schedule.remove"),
        (Method::PUT, "/v1/limits", because(json!({"group": "g", "concurrency": 2})), "limit.put"),
        (Method::DELETE, "/v1/limits?group=g", Value::Null, "limit.remove"),
        (Method::PUT, "/v1/retention/failed", because(json!({"period": "forever"})), "retention.put"),
        (Method::DELETE, "/v1/retention/failed", Value::Null, "retention.remove"),
        (
            Method::POST,
            "/v1/alerts/silence",
            because(json!({"alert": "queue_paused: mail", "for": "1h"})),
            "alert.silence",
        ),
        (
            Method::POST,
            "/v1/alerts/unsilence",
            because(json!({"alert": "queue_paused: mail"})),
            "alert.unsilence",
        ),
        (Method::POST, "/v1/dags", json!({"name": "d", "tasks": {"a": {"kind": "k"}}}), "dag.define"),
        (Method::POST, "/v1/batches", because(json!({"dag": "d"})), "batch.start"),
        (Method::PUT, "/v1/consumers/c", because(json!({})), "consumer.put"),
        (Method::POST, "/v1/consumers/c/expect", because(expect), "inbox.expect"),
    ] {
        let answer = place.ask(method, path, body.clone()).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        let entry = audit(&place).await.remove(0);
        assert_eq!(entry["what"], what, "{path}: {entry}");
        assert_eq!(entry["who"], "anonymous@127.0.0.1", "{path}: {entry}");
        assert_eq!(entry["why"], body["reason"], "{path}: {entry}");
    }
}

pub(crate) async fn whoever_removes_defines_or_tries_again_says_why(place: Place) {
    let retry = format!("{}/retry-failures?", bulk::stopped(&place).await);
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    place.ask(Method::PUT, "/v1/schedules/s", json!({"every": "1h", "kind": "k"})).await;
    place.ask(Method::PUT, "/v1/limits", json!({"group": "g", "concurrency": 2})).await;
    for (method, path, body, what) in [
        (Method::DELETE, "/v1/schedules/s?", Value::Null, "schedule.remove"),
        (Method::DELETE, "/v1/limits?group=g&", Value::Null, "limit.remove"),
        (Method::DELETE, "/v1/subscriptions/orders?", Value::Null, "subscription.remove"),
        (Method::POST, retry.as_str(), Value::Null, "bulk.retry_failures"),
        (Method::POST, "/v1/dags?", json!({"name": "d", "tasks": {"a": {"kind": "k"}}}), "dag.define"),
    ] {
        let long = format!("{path}reason={}", "x".repeat(1001));
        let refused = place.ask(method.clone(), &long, body.clone()).await;
        assert_eq!((refused.code(), refused.at()), ("invalid_reason", "query reason"), "{path}");
        let answer = place.ask(method, &format!("{path}reason=as%20agreed"), body).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        let entry = audit(&place).await.remove(0);
        assert_eq!((&entry["what"], &entry["why"]), (&json!(what), &json!("as agreed")), "{path}: {entry}");
    }
}

/// PostgreSQL only: in a SQLite file there is nothing to change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_a_restored_log_as_it_is_says_why() {
    let (_database, store) = on_postgres().await;
    let place = Place::serve(store).await;
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    let long = format!("/v1/events/reseed?reason={}", "x".repeat(1001));
    assert_eq!(place.ask(Method::POST, &long, Value::Null).await.code(), "invalid_reason");
    let answer = place.ask(Method::POST, "/v1/events/reseed?reason=restored", Value::Null).await;
    assert_eq!(answer.body, json!({"subscriptions": 1}));
    let entry = audit(&place).await.remove(0);
    assert_eq!((&entry["what"], &entry["why"]), (&json!("log.reseed"), &json!("restored")), "{entry}");
}
