//! Test that the server conforms to its OpenAPI document: Schemathesis sends valid and invalid requests and checks every response.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::filling::Filled;
use crate::support::http::ask;
use crate::support::process::Process;
use crate::support::{Place, on_each_store};
use milepost_testkit::wait;
use serde_json::{Value, json};

on_each_store! {
    no_request_meets_a_fault_of_the_server_or_an_answer_that_is_not_described,
}

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// The server has no internal errors, and the status, content type, headers and content of responses are documented.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

fn no_request_meets_a_fault_of_the_server_or_an_answer_that_is_not_described(place: Place) {
    let filled = Filled::of(&place);
    place.run(&["inbox", "set", "shop", "--parked-max", "5"]).ok();
    work_through(&place, &filled);
    // Creates waiting jobs; requests create everything else. No worker runs, so that requests always find the same state.
    place.run(&["enqueue", "echo"]).ok();
    place.run(&["enqueue", "echo"]).ok();
    let (_server, address) = Process::serve(&place, &["--only", "api"]);
    place.write("openapi.json", document(&address, &filled).to_string());
    let ran = Command::new(python().join("bin/schemathesis"))
        .args(["run", "openapi.json", "--url", &format!("http://{address}")])
        .args(["--checks", CHECKS, "--no-color"])
        // The requests are deterministic, and limited to about two minutes.
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "10"])
        .args(["--generation-deterministic", "--continue-on-failure"])
        // The stream does not end, and a claim may wait for 30 s.
        .args(["--exclude-path", "/v1/stream", "--request-timeout", "60"])
        // Nonsensical requests are rejected as expected; warnings about their number are disabled.
        .args(["--warnings", "off", "--suppress-health-check", "all"])
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
}

/// Starts a server with workers until the jobs in the store have ended and the items of the configuration exist.
fn work_through(place: &Place, filled: &Filled) {
    let (server, _) = Process::serve(place, &[]);
    let is = |job: &str, state: &str| place.job(job)["state"] == state;
    let is_published = || {
        let all = place.run(&["events", "subscriptions", "--json"]).json();
        let all = all.as_array().unwrap();
        all.len() == 2 && all.iter().all(|subscription| subscription["backlog"] == 0)
    };
    let done = wait::until("all jobs are done", || async {
        is(&filled.job, "failed") && is(&filled.bulk, "succeeded") && is_published()
    });
    tokio::runtime::Runtime::new().unwrap().block_on(done);
    server.leave();
}

/// Returns the server's document with examples of existing items in all paths. Requests vary one part at a time and use the examples for
/// the other parts, so that most get past "there is no such job" without additional requests.
fn document(address: &str, filled: &Filled) -> Value {
    let mut document = answered(&ask(address, "GET", "/openapi.json", ""));
    let known = known(address, filled);
    for (path, item) in document["paths"].as_object_mut().unwrap() {
        // Claims of an existing worker would wait for up to 30 s each.
        if !path.contains('{') || path.ends_with("/claim") {
            continue;
        }
        let things = known.iter().find(|(under, ..)| path.starts_with(under));
        let (_, kept, removed) = things.unwrap_or_else(|| panic!("an example for {path} is needed"));
        for (method, operation) in item.as_object_mut().unwrap() {
            let example = if method == "delete" { removed } else { kept };
            let parameters = operation["parameters"].as_array_mut().unwrap();
            for parameter in parameters.iter_mut().filter(|parameter| parameter["in"] == "path") {
                parameter["example"] = example.clone();
            }
        }
    }
    document
}

/// Returns for each path an existing item, and one for deletion: after the first deletion, requests for the same item would find nothing.
fn known(address: &str, filled: &Filled) -> [(&'static str, Value, Value); 11] {
    let worker = || {
        let body = r#"{"name": "w", "queues": ["default"], "kinds": ["mail"], "lease_ms": 3600000}"#;
        answered(&ask(address, "POST", "/v1/workers", body))["id"].clone()
    };
    let one = |under, thing: &str| (under, json!(thing), json!(thing));
    [
        one("/v1/jobs/{", &filled.job),
        one("/v1/bulk-runs/{", &filled.bulk),
        one("/v1/bulk-definitions/{", "popular"),
        one("/v1/batches/{", &filled.batch),
        one("/v1/dags/{", "chain"),
        one("/v1/queues/{", "default"),
        one("/v1/consumers/{", "shop"),
        one("/v1/retention/{", "failed"),
        // Created again by each request that stores a schedule.
        one("/v1/schedules/{", "nightly"),
        ("/v1/subscriptions/{", json!("all"), json!("copy")),
        ("/v1/workers/{", worker(), worker()),
    ]
}

/// Returns the body of a response.
fn answered(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Returns a Python with Schemathesis. The environment is created once, outside the source folder.
fn python() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(SCHEMATHESIS.replace("==", "-"));
        let made = folder.join("made");
        if !made.exists() {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS];
            run(Command::new(folder.join("bin/python3")).args(pip));
            std::fs::write(made, "").unwrap();
        }
        folder
    });
    &MADE
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; install Python 3.11 or newer with venv (python3, python3-venv)")
    });
    let told = [ran.stdout, ran.stderr].concat();
    assert!(
        ran.status.success(),
        "{command:?}: {}\nPython 3.11 or newer with venv and access to a package index is needed (python3, python3-venv)",
        String::from_utf8_lossy(&told)
    );
}
