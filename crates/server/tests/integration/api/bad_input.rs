//! Tests of invalid requests: the response contains the error and its position, and is never a 5xx.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::api::place::{Answer, Place};

async fn post_text(place: &Place, path: &str, body: &str) -> Answer {
    let request = place.request(Method::POST, path).header("content-type", "application/json");
    place.send(request.body(body.to_owned())).await
}

pub(crate) async fn what_is_wrong_with_a_body_is_told_with_its_place(place: Place) {
    let malformed = post_text(&place, "/v1/jobs", "{\"kind\": \"k\",\n  \"payload\": }").await;
    assert_eq!(
        (malformed.status, malformed.code(), malformed.at()),
        (StatusCode::BAD_REQUEST, "malformed_json", "line 2 column 14")
    );
    let list = post_text(&place, "/v1/jobs", " [\"k\", {}]").await;
    assert_eq!((list.status, list.code()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"));
    let trailing = post_text(&place, "/v1/jobs", "{\"kind\": \"k\"} {}").await;
    assert_eq!((trailing.code(), trailing.at()), ("malformed_json", "line 1 column 15"));
    let unknown = place.post("/v1/jobs", &json!({"kind": "k", "prority": 1})).await;
    assert_eq!((unknown.status, unknown.code()), (StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"));
    assert!(unknown.body["detail"].as_str().unwrap().contains("unknown field `prority`"), "{unknown:?}");
    let typed = place
        .post("/v1/jobs/create-many", &json!({"jobs": [{"kind": "k"}, {"kind": "k", "max_attempts": "3"}]}))
        .await;
    assert_eq!((typed.code(), typed.at()), ("invalid_body", "jobs[1].max_attempts"));
    let both = place
        .post("/v1/jobs", &json!({"kind": "k", "delay_ms": 1, "start_at": "2030-01-01T00:00:00Z"}))
        .await;
    assert_eq!(both.code(), "invalid_job");
    let form = place
        .send(place.request(Method::POST, "/v1/jobs").header("content-type", "text/plain").body("{}"))
        .await;
    assert_eq!((form.status, form.code()), (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json"));
    let large = format!("{{\"kind\": \"k\", \"payload\": \"{}\"}}", "x".repeat(17 * 1024 * 1024));
    let large = post_text(&place, "/v1/jobs", &large).await;
    assert_eq!((large.status, large.code()), (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"));
}

pub(crate) async fn nothing_of_a_batch_with_a_fault_is_created(place: Place) {
    let twice = json!({"jobs": [{"kind": "k", "key": "a"}, {"kind": "k"}, {"kind": "k", "key": "a"}]});
    let twice = place.post("/v1/jobs/create-many", &twice).await;
    assert_eq!(
        (twice.status, twice.code(), twice.at()),
        (StatusCode::UNPROCESSABLE_ENTITY, "key_twice", "jobs[2].key")
    );
    let faulty =
        place.post("/v1/jobs/create-many", &json!({"jobs": [{"kind": "k"}, {"kind": "a\u{0}b"}]})).await;
    assert_eq!((faulty.code(), faulty.at()), ("invalid_job", "jobs[1].kind"));
    let late = "{\"jobs\": [{\"kind\": \"k\"}, {\"kind\": \"k\", \"payload\": \"\\u0000\"}]}";
    assert_eq!(post_text(&place, "/v1/jobs/create-many", late).await.code(), "invalid_job");
    assert_eq!(place.post("/v1/jobs/create-many", &json!({"jobs": []})).await.code(), "too_many");
    assert_eq!(place.get("/v1/jobs").await.body["items"], json!([]));
}

pub(crate) async fn parameters_that_cannot_be_are_refused(place: Place) {
    for (path, at) in [
        ("/v1/jobs?limit=0", "query limit"),
        ("/v1/jobs?limit=1000000", "query limit"),
        ("/v1/jobs?limit=ten", "query limit"),
        ("/v1/jobs?cursor=yesterday", "query cursor"),
        ("/v1/jobs?state=gone", "query state"),
        ("/v1/jobs/4711", "path id"),
        ("/v1/jobs/4711/history", "path id"),
    ] {
        let answer = place.get(path).await;
        assert_eq!(
            (answer.status, answer.code(), answer.at()),
            (StatusCode::BAD_REQUEST, "invalid_parameter", at),
            "{path}"
        );
    }
    let unknown = place.get("/v1/jobs?sort=asc").await;
    assert!(unknown.body["detail"].as_str().unwrap().contains("sort"), "{unknown:?}");
    let key =
        place.request(Method::POST, "/v1/jobs").header("Idempotency-Key", "").json(&json!({"kind": "k"}));
    assert_eq!(place.send(key).await.at(), "header Idempotency-Key");
    for name in ["Idempotency-Key", "Authorization", "Host"] {
        let twice = place.request(Method::POST, "/v1/jobs").header(name, "localhost").header(name, "other");
        let twice = place.send(twice.json(&json!({"kind": "k"}))).await;
        assert_eq!((twice.status, twice.code()), (StatusCode::BAD_REQUEST, "repeated_header"), "{name}");
        assert_eq!(twice.at(), format!("header {}", name.to_lowercase()));
    }
}

pub(crate) async fn what_is_not_there_is_not_found(place: Place) {
    let id = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
    for path in ["", "/history", "/attempts"] {
        let answer = place.get(&format!("/v1/jobs/{id}{path}")).await;
        assert_eq!((answer.status, answer.code()), (StatusCode::NOT_FOUND, "no_such_job"), "{path}");
    }
    let operate = place.post(&format!("/v1/jobs/{id}/operate"), &json!({"operation": "cancel"})).await;
    assert_eq!((operate.status, operate.code()), (StatusCode::NOT_FOUND, "no_such_job"));
    assert_eq!(place.get("/v1/jbos").await.code(), "no_such_path");
    let method = place.send(place.request(Method::DELETE, "/v1/jobs")).await;
    assert_eq!((method.status, method.code()), (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"));
}

/// Paths with invalid parameters.
const BAD_PATHS: [&str; 30] = [
    "/v1/jobs?kind=%00",
    "/v1/jobs?key=%00",
    "/v1/jobs?queue=%00%01",
    "/v1/jobs?kind=%FF%FE",
    "/v1/jobs/%00",
    "/v1/jobs/%FF",
    "/v1/schedules/%FF",
    "/v1/schedules/%00",
    "/v1/ticks?cron=%00",
    "/v1/ticks?every=99999999999999999999y",
    "/v1/ticks?cron=@daily&from=-009999-01-01T00:00:00Z",
    "/v1/ticks?cron=@daily&from=9999-12-30T22:00:00Z",
    "/v1/bulk-definitions/%00",
    "/v1/bulk-runs?name=%00",
    "/v1/bulk-runs?group=%FF",
    "/v1/dags/%00",
    "/v1/dags/x?version=%00",
    "/v1/batches?dag=%00",
    "/v1/batches?key=%01",
    "/v1/batches/%00/graph",
    "/v1/doctor?check=%00",
    "/v1/gaps?consumer=%00",
    "/v1/gaps?limit=-1",
    "/v1/dead-letters?consumer=%01",
    "/v1/dead-letters?cursor=9223372036854775807",
    "/v1/parked?subscription=%00",
    "/v1/dead-events?subscription=%00",
    "/v1/jobs?limit=99999999999999999999",
    "/v1/jobs?limit=-1",
    "/%00",
];

pub(crate) async fn no_bad_request_is_the_servers_fault(place: Place) {
    for path in BAD_PATHS {
        let answer = place.get(path).await;
        assert!(answer.status.is_client_error() || answer.status.is_success(), "{path}: {answer:?}");
    }
    for body in [
        "",
        "null",
        "[]",
        "1",
        "{}",
        "{\"kind\": null}",
        "{\"kind\": \"k\", \"kind\": \"k\"}",
        "\u{0}",
        "{\"kind\": \"k\", \"delay_ms\": 18446744073709551615}",
        "{\"kind\": \"k\", \"timeout_ms\": 18446744073709551615}",
        "{\"kind\": \"k\", \"start_at\": \"-009999-01-01T00:00:00Z\"}",
        "{\"kind\": \"k\", \"start_at\": \"9999-12-31T23:59:59Z\"}",
        "{\"kind\": \"k\", \"start_at\": \"99999-01-01T00:00:00Z\"}",
        "{\"kind\": \"k\", \"payload\": \"\\ud800\"}",
        "{\"kind\": \"k\", \"payload\": 1e400}",
        "{\"kind\": \"k\", \"max_attempts\": 0}",
        "{\"kind\": \"k\", \"priority\": 9}",
    ] {
        let answer = post_text(&place, "/v1/jobs", body).await;
        assert!(answer.status.is_client_error() || answer.status.is_success(), "{body}: {answer:?}");
    }
    let deep = format!("{{\"kind\": \"k\", \"payload\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(post_text(&place, "/v1/jobs", &deep).await.status.is_client_error());
    let queue = place.request(Method::PUT, "/v1/queues/%00").json(&json!({"paused": true}));
    assert!(place.send(queue).await.status.is_client_error());
    let id = place.created(&json!({"kind": "k"})).await;
    for body in [
        json!({"operation": "snooze", "delay_ms": u64::MAX}),
        json!({"operation": "cancel", "grace_ms": u64::MAX}),
        json!({"operation": "abort", "reason": "\u{0}"}),
    ] {
        let answer = place.post(&format!("/v1/jobs/{id}/operate"), &body).await;
        assert!(answer.status.is_client_error() || answer.status.is_success(), "{body}: {answer:?}");
    }
}

pub(crate) async fn a_page_of_another_origin_is_refused(place: Place) {
    let foreign = place.request(Method::GET, "/v1/jobs").header("Origin", "https://evil.example");
    let foreign = place.send(foreign).await;
    assert_eq!((foreign.status, foreign.code()), (StatusCode::FORBIDDEN, "wrong_origin"));
    let rebound = place.send(place.request(Method::GET, "/v1/jobs").header("Host", "evil.example")).await;
    assert_eq!((rebound.status, rebound.code()), (StatusCode::MISDIRECTED_REQUEST, "wrong_host"));
    let named = place.send(place.request(Method::GET, "/healthz").header("Host", "localhost:1")).await;
    assert_eq!(named.status, StatusCode::OK);
    for host in ["[::1].evil:7193", "evil@127.0.0.1:7193", "127.0.0.1:80@127.0.0.1", "localhost:evil"] {
        let dressed_up = place.send(place.request(Method::GET, "/v1/jobs").header("Host", host)).await;
        assert_eq!((dressed_up.status, dressed_up.code()), (StatusCode::BAD_REQUEST, "no_host"), "{host}");
    }
}
