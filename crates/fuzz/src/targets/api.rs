//! Requests to the HTTP API, over a store in a file.

use std::sync::{Arc, LazyLock};

use milepost_core::json::is_same_json;
use milepost_server::fuzzing::{Answer, Server};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::check;

/// A server, with what must live as long.
struct Api {
    server: Server,
    runtime: Runtime,
    _folder: TempDir,
}

static API: LazyLock<Api> = LazyLock::new(|| {
    let folder = TempDir::new().expect("there is a folder for temporary files");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime can be started");
    let store = SqliteStore::open(folder.path().join("fuzz.db"), SqliteOptions::default());
    let store = store.expect("the store can be opened");
    runtime.block_on(store.migrate()).expect("the store can be created");
    let _within = runtime.enter();
    let server = Server::new(Arc::new(store)).expect("every route has a role");
    Api { server, runtime, _folder: folder }
});

/// Sends a request: method and path on the first line, then the body. The server never fails, its errors are readable, and a created job has
/// the payload of the request.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Some([head, body]) = check::lines::<2>(input) else { return };
    let Some((method, path)) = head.split_once(' ') else { return };
    // The stream does not end, and a claim with a wait ends late.
    if !path.starts_with("/v1/") || path.starts_with("/v1/stream") || body.contains("wait") {
        return;
    }
    let Some(answer) = send(method, path, body) else { return };
    assert!(answer.status < 500, "{method} {path} {body}: {} {}", answer.status, text(&answer));
    if answer.status >= 400 {
        check_problem(&answer);
    } else if method == "POST" && path == "/v1/jobs" {
        check_created(&answer, body);
    } else if answer.content_type.contains("json") {
        serde_json::from_slice::<Value>(&answer.body).expect("a response is JSON");
    }
}

fn send(method: &str, path: &str, body: &str) -> Option<Answer> {
    let Api { server, runtime, .. } = &*API;
    runtime.block_on(server.answer(method, path, body.as_bytes()))
}

fn text(answer: &Answer) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&answer.body)
}

fn check_problem(answer: &Answer) {
    assert_eq!(answer.content_type, "application/problem+json", "{} {}", answer.status, text(answer));
    let problem: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
    assert_eq!(problem["status"], answer.status);
    let faults: Vec<&Value> = problem["faults"].as_array().into_iter().flatten().collect();
    let detail = |fault: &Value| fault["detail"].as_str().expect("a problem has a detail").to_owned();
    if faults.is_empty() {
        check::message(&detail(&problem));
    } else {
        // The detail lists the faults, one on a line.
        detail(&problem).lines().for_each(check::message);
    }
    for fault in &faults {
        check::message(&detail(fault));
    }
    for fault in faults.into_iter().chain([&problem]) {
        // The position of a member whose name is blank is blank.
        if let Some(at) = fault["at"].as_str().filter(|at| !at.trim().is_empty()) {
            check::message(at);
        }
    }
}

/// Checks that the job that a request created has the payload of the request.
fn check_created(answer: &Answer, body: &str) {
    #[derive(serde::Deserialize)]
    struct Payload {
        #[serde(default)]
        payload: Option<Box<RawValue>>,
    }

    let created: Value = serde_json::from_slice(&answer.body).expect("a response is JSON");
    let id = created["id"].as_str().expect("a created job has an id");
    if created["duplicate"] == true {
        return;
    }
    let job = send("GET", &format!("/v1/jobs/{id}"), "").expect("the job can be read");
    assert_eq!(job.status, 200, "{}", text(&job));
    let (job, request): (Payload, Payload) = (
        serde_json::from_slice(&job.body).expect("a job is JSON"),
        serde_json::from_str(body).expect("an accepted request is JSON"),
    );
    let of = |payload: Payload| {
        payload.payload.map_or_else(|| "null".to_owned(), |payload| payload.get().to_owned())
    };
    let (read, sent) = (of(job), of(request));
    assert!(is_same_json(&read, &sent), "{sent} is read as {read}");
}
