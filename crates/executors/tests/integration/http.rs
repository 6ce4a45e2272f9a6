//! Jobs that run as HTTP calls, against a real server with valid, invalid and missing responses.

use crate::support;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::Stage;
use crate::support::server::Server;
use milepost::KindOptions;
use milepost_core::history::HistoryEntry;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_executors::http::HttpConfig;
use milepost_testkit::wait;
use serde_json::{Value, json};

/// Returns how the first attempt of a job ended when this path of the server was called.
async fn end(server: &Server, path: &str) -> HistoryEntry {
    end_within(wait::LIMIT, server, path).await
}

/// As [`end`], with this time limit for the call.
async fn end_within(timeout: Duration, server: &Server, path: &str) -> HistoryEntry {
    let stage = Stage::http(HttpConfig { timeout, ..support::local(format!("{}{path}", server.url)) }).await;
    stage.first_end().await
}

async fn result(server: &Server, path: &str, payload: &Value) -> Option<Value> {
    Stage::http(support::local(format!("{}{path}", server.url))).await.result(payload).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_the_result() {
    let server = Server::start().await;
    assert_eq!(
        result(&server, "/echo", &json!({ "to": "ada", "n": 1.5 })).await,
        Some(json!({ "to": "ada", "n": 1.5 }))
    );
    assert_eq!(result(&server, "/text", &json!({})).await, Some("sent 3 mails".into()));
    assert_eq!(result(&server, "/empty", &json!({})).await, None);
    assert_eq!(server.requests()[0].header("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_tells_of_its_run_and_has_the_same_idempotency_key() {
    let server = Server::start().await;
    let headers = BTreeMap::from([("X-Team".to_owned(), "mail".to_owned())]);
    let config = HttpConfig { headers, ..support::local(format!("{}/status/503", server.url)) };
    let stage = Stage::http(config).await;
    let job = stage.enqueue(&json!({ "to": "ada" })).await;
    wait::until("the job was attempted twice", || async { server.requests().len() >= 2 }).await;
    for (request, number) in server.requests().iter().zip(["1", "2"]) {
        let id = job.to_string();
        assert_eq!(request.header("idempotency-key"), Some(id.as_str()));
        assert_eq!(request.header("milepost-job-id"), Some(id.as_str()));
        assert_eq!(request.header("milepost-kind"), Some("runtime"));
        assert_eq!(request.header("milepost-attempt"), Some(number));
        assert_eq!(request.header("milepost-run-token"), Some(number));
        assert_eq!(request.header("x-team"), Some("mail"));
        assert_eq!(request.body, br#"{"to":"ada"}"#);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_schedule_tells_its_tick() {
    let server = Server::start().await;
    let stage = Stage::http(support::local(format!("{}/empty", server.url))).await;
    stage.result(&json!({})).await;
    let (_, tick) = stage.scheduled().await;
    let requests = server.requests();
    assert_eq!(
        requests[0].header("milepost-nominal-at"),
        None,
        "a job without a schedule has no nominal time"
    );
    assert_eq!(requests[1].header("milepost-nominal-at"), Some(tick.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_whether_another_attempt_makes_sense() {
    let server = Server::start().await;
    let (retry, fail) = (Verb::Retry, Verb::Fail);
    for (status, verb) in [
        (400, fail),
        (401, fail),
        (404, fail),
        (409, fail),
        (422, fail),
        (304, fail),
        (399, fail),
        (408, retry),
        (425, retry),
        (429, retry),
        (500, retry),
        (502, retry),
        (503, retry),
        (599, retry),
    ] {
        let end = end(&server, &format!("/status/{status}")).await;
        assert_eq!((end.verb, end.error_code), (verb, Some(format!("http_{status}"))));
        let message = end.error_message.unwrap();
        assert!(message.contains(&server.url) && message.contains(&status.to_string()), "{message}");
        assert!(message.ends_with("no luck") || status < 400, "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_said_so() {
    let server = Server::start().await;
    let end = end(&server, "/status/302?location=/echo?s3cret").await;
    assert_eq!((end.verb, end.error_code.as_deref()), (Verb::Fail, Some("http_302")));
    let message = end.error_message.unwrap();
    assert!(message.contains("not followed") && !message.contains("s3cret"), "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured_in_seconds_and_as_a_date() {
    let server = Server::start().await;
    let waits = |end: &HistoryEntry| end.ready_at.unwrap().duration_since(end.at).as_secs();
    let seconds = end(&server, "/status/429?retry-after=90").await;
    assert!((89..=91).contains(&waits(&seconds)), "{seconds:?}");
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
    let date = at.strftime("%a,+%d+%b+%Y+%H:%M:%S+GMT");
    let date = end(&server, &format!("/status/503?retry-after={date}")).await;
    assert!((3000..=3601).contains(&waits(&date)), "{date:?}");
    let none = end(&server, "/status/503?retry-after=soon").await;
    assert_eq!(waits(&none), 0, "an invalid Retry-After is ignored");
    let final_one = end(&server, "/status/400?retry-after=90").await;
    assert_eq!(final_one.verb, Verb::Fail);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_in_full_is_asked_again() {
    let server = Server::start().await;
    // Long enough for a response to begin, and far below the time that these would take.
    let soon = Duration::from_secs(5);
    for (path, code) in [
        ("/hang", "http_timeout"),
        ("/drip", "http_timeout"),
        ("/drip-head", "http_timeout"),
        ("/drip-refusal", "http_503"),
        ("/reset", "http_broken"),
        ("/garbage", "http_broken"),
        ("/longer", "http_broken"),
        ("/endless-head", "http_broken"),
    ] {
        let end = match code {
            "http_broken" => end(&server, path).await,
            _ => end_within(soon, &server, path).await,
        };
        assert_eq!((end.verb, end.error_code.as_deref()), (Verb::Retry, Some(code)), "{path}: {end:?}");
    }
    let nobody = Stage::http(support::local("http://127.0.0.1:1/")).await.first_end().await;
    assert_eq!((nobody.verb, nobody.error_code.as_deref()), (Verb::Retry, Some("http_connect")));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_of_a_body_is_read_than_is_kept() {
    let server = Server::start().await;
    let cut = |result: Option<Value>| result.unwrap().as_str().unwrap().to_owned();
    assert_eq!(
        result(&server, "/shorter", &json!({})).await,
        Some(json!([1])),
        "only as many bytes as the content length are read"
    );
    let big = cut(result(&server, "/big", &json!({})).await);
    assert_eq!(big.len(), 200_000, "JSON is not cut where a text is");
    let endless = cut(result(&server, "/endless", &json!({})).await);
    assert!(endless.len() < 65 * 1024 && endless.ends_with("x…"), "{} bytes", endless.len());
    let refused = end(&server, "/endless-refusal").await;
    assert_eq!((refused.verb, refused.error_code.as_deref()), (Verb::Fail, Some("http_404")));
    assert!(refused.error_message.unwrap().len() < 2000);
    wait::until("the connection was closed", || async { server.left.load(Ordering::SeqCst) >= 2 }).await;
    let written = server.endless_bytes.load(Ordering::SeqCst);
    assert!(written < 32 * 1024 * 1024, "the server could write {written} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_drops_the_request_at_once() {
    let server = Server::start().await;
    // Only the cancellation ends it.
    let long = Duration::from_secs(3600);
    let config = HttpConfig { timeout: long, ..support::local(format!("{}/hang", server.url)) };
    let stage = Stage::http_with(KindOptions { stop_grace: long, ..support::soon() }, config).await;
    let job = stage.enqueue(&json!({})).await;
    wait::until("the server has received the request", || async { server.requests().len() == 1 }).await;
    assert_eq!(stage.scene.state(job).await, JobState::Running);
    stage.cancel(job).await;
    wait::until("the connection was closed", || async { server.left.load(Ordering::SeqCst) == 1 }).await;
}
