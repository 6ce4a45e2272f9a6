//! Tests of changes of jobs and queues by operators.

use crate::api::place::Place;
use reqwest::{Method, StatusCode};
use serde_json::json;

pub(crate) async fn an_operator_changes_jobs(place: Place) {
    let id = place.created(&json!({"kind": "k"})).await;
    let path = format!("/v1/jobs/{id}/operate");
    let no = place.post(&path, &json!({"operation": "retry"})).await;
    assert_eq!((no.status, no.code()), (StatusCode::CONFLICT, "illegal_transition"));
    let snoozed = place.post(&path, &json!({"operation": "snooze", "delay_ms": 60_000})).await;
    assert_eq!(snoozed.body["outcome"], "pending");
    let aborted = place.post(&path, &json!({"operation": "abort", "reason": "too early"})).await;
    assert_eq!(aborted.body["outcome"], "aborted");
    assert_eq!(place.post(&path, &json!({"operation": "retry"})).await.body["outcome"], "pending");
    assert_eq!(place.post(&path, &json!({"operation": "cancel"})).await.body["outcome"], "canceled");
    let history = place.get(&format!("/v1/jobs/{id}/history")).await.body;
    let verbs: Vec<&str> = history.as_array().unwrap().iter().map(|e| e["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["create", "snooze", "abort", "resume", "cancel"]);
    assert_eq!(history[2]["note"], "too early");
}

pub(crate) async fn an_operator_edits_a_job(place: Place) {
    let id = place.created(&json!({"kind": "k", "payload": {"to": "ada"}})).await;
    let path = format!("/v1/jobs/{id}");
    let edit = |body: serde_json::Value| place.send(place.request(Method::PATCH, &path).json(&body));
    let edited =
        edit(json!({"payload": {"to": "eve"}, "priority": 4, "max_attempts": 2, "reason": "typo"})).await;
    assert_eq!((edited.status, &edited.body), (StatusCode::OK, &json!({"state": "pending"})));
    let job = place.get(&path).await.body;
    assert_eq!(
        (&job["payload"], &job["priority"], &job["max_attempts"]),
        (&json!({"to": "eve"}), &json!(4), &json!(2))
    );
    assert_eq!(edit(json!({"delay_ms": 60_000})).await.status, StatusCode::OK);
    assert_eq!(place.get(&path).await.body["waiting_for"]["reason"], "time");
    let history = place.get(&format!("{path}/history")).await.body;
    assert_eq!((&history[1]["verb"], &history[1]["note"]), (&json!("edit"), &json!("typo")));
    let audit = place.get(&format!("/v1/audit?subject={id}")).await.body;
    let entry = &audit["items"][1];
    assert_eq!((&entry["what"], &entry["why"]), (&json!("job.edit"), &json!("typo")), "{audit}");
    assert_eq!(entry["detail"]["after"]["edited"], json!(["payload", "priority", "max_attempts"]));
    assert!(!audit.to_string().contains("eve"), "the audit has no payloads");

    let nothing = edit(json!({"reason": "why"})).await;
    assert_eq!(nothing.status, StatusCode::UNPROCESSABLE_ENTITY, "{nothing:?}");
    let both = edit(json!({"delay_ms": 1, "start_at": "2100-01-01T00:00:00Z"})).await;
    assert_eq!(both.body["at"], "start_at");
    place.post(&format!("{path}/operate"), &json!({"operation": "cancel"})).await;
    let ended = edit(json!({"priority": 1})).await;
    assert_eq!((ended.status, ended.code()), (StatusCode::CONFLICT, "illegal_transition"));
}

pub(crate) async fn a_queue_is_paused_and_goes_on(place: Place) {
    place.created(&json!({"kind": "k", "queue": "post office"})).await;
    let set = |paused: bool| {
        let request =
            place.request(Method::PUT, "/v1/queues/post%20office").json(&json!({ "paused": paused }));
        place.send(request)
    };
    assert_eq!(set(true).await.body, json!({"changed": true}));
    assert_eq!(set(true).await.body, json!({"changed": false}));
    let queues = place.get("/v1/queues").await.body;
    assert_eq!(queues[0]["name"], "post office");
    assert!(queues[0]["paused_at"].is_string(), "{queues}");
    assert_eq!(set(false).await.body, json!({"changed": true}));
}

pub(crate) async fn an_operation_on_many_is_previewed_and_becomes_a_bulk_job(place: Place) {
    let mut ids = Vec::new();
    for n in 0..3 {
        let id = place.created(&json!({ "kind": "mail", "payload": { "n": n } })).await;
        place.post(&format!("/v1/jobs/{id}/operate"), &json!({ "operation": "abort" })).await;
        ids.push(id);
    }
    place.created(&json!({ "kind": "other" })).await;
    let ask = |dry: bool| json!({ "filter": { "state": "aborted", "kind": "mail" }, "operation": "retry", "reason": "fixed", "dry": dry });
    let preview = place.post("/v1/jobs/operate-many", &ask(true)).await;
    assert_eq!((preview.status, &preview.body), (StatusCode::OK, &json!({ "jobs": 3, "some": ids })));
    let keyed = |body: serde_json::Value| {
        let request = place.request(Method::POST, "/v1/jobs/operate-many").header("Idempotency-Key", "once");
        place.send(request.json(&body))
    };
    let started = keyed(ask(false)).await;
    assert_eq!((started.status, &started.body["jobs"]), (StatusCode::ACCEPTED, &json!(3)), "{started:?}");
    let again = keyed(ask(false)).await;
    assert_eq!(
        (again.status, &again.body["bulk"]),
        (StatusCode::ACCEPTED, &started.body["bulk"]),
        "{again:?}"
    );
    assert_eq!(again.body["jobs"], 3);
    let mut other = ask(false);
    other["reason"] = json!("for something else");
    assert_eq!(keyed(other).await.code(), "idempotency_key_taken");
    let bulk = place.get(&format!("/v1/jobs/{}", started.body["bulk"].as_str().unwrap())).await;
    assert_eq!((&bulk.body["kind"], &bulk.body["queue"]), (&json!("milepost.operate"), &json!("milepost")));
    assert_eq!(
        (&bulk.body["payload"]["verb"], &bulk.body["payload"]["note"]),
        (&json!("resume"), &json!("fixed"))
    );
    for (body, at) in [
        (json!({ "filter": { "state": "failed" }, "operation": "cancel", "reason": " " }), "reason"),
        (json!({ "filter": { "state": "succeeded" }, "operation": "retry", "reason": "x" }), "filter.state"),
        (json!({ "filter": { "kind": "mail" }, "operation": "retry", "reason": "x" }), "filter"),
        (
            json!({ "filter": { "state": "failed", "payload": "x" }, "operation": "retry", "reason": "x" }),
            "filter.payload",
        ),
    ] {
        let refused = place.post("/v1/jobs/operate-many", &body).await;
        assert!(refused.status.is_client_error(), "{refused:?}");
        assert_eq!(refused.at(), at, "{refused:?}");
    }
}
