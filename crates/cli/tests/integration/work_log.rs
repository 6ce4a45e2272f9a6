//! Tests of the log of `milepost work` in JSON.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use crate::support::Place;
use crate::work::{enqueue, start};

/// Parses the lines of a log in JSON; each has a time, a level and a message.
fn objects(log: &str) -> Vec<Value> {
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(["timestamp", "level", "message"].iter().all(|key| line[*key].is_string()), "{line}");
    }
    lines
}

#[test]
fn a_log_in_json_is_an_object_a_line() {
    let place = Place::without_store();
    place.write("milepost.toml", "[kinds.echo]\nexec = { program = \"cat\" }\n");
    let mut work = start(&place, &["--log-format", "json"]);
    assert!(work.heard.contains("created the store"), "{}", work.heard);
    let job = enqueue(&place, "echo", &json!({}));
    work.hear("succeeded");
    work.signal("TERM");
    let (_, log) = work.end();
    let lines = objects(&log);
    let done = lines.iter().find(|line| line["message"] == "succeeded").unwrap();
    assert_eq!((&done["job"], &done["kind"], &done["attempt"]), (&job.into(), &"echo".into(), &1.into()));
}

#[test]
fn what_ends_a_worker_is_an_object_too_when_the_log_is_in_json() {
    let place = Place::without_store();
    let echo = "kinds.echo.exec.program = \"cat\"\n";
    let cases = [
        ("kinds = 7\n", "sqlite:jobs.db", 2, "milepost.toml:1:9"),
        ("", "sqlite:jobs.db", 1, "nothing to run"),
        (echo, "postgres://127.0.0.1:1/app?connect_timeout=1", 1, "because: "),
        (echo, "mysql://127.0.0.1/app", 2, "sqlite:PATH"),
    ];
    for (file, store, status, words) in cases {
        place.write("milepost.toml", file);
        let ran = place.run(&["--store", store, "work", "--log-format", "json"]);
        assert_eq!(ran.status, status, "{}", ran.err);
        let lines = objects(&ran.err);
        let last = lines.last().unwrap();
        assert_eq!(last["level"], "ERROR");
        assert!(last["message"].as_str().unwrap().contains(words), "{last}");
    }
}
