//! Tests of state changes as events, from the configuration to the sink.

#![cfg(unix)]

use crate::support::process::Process;
use crate::support::{Place, on_each_store, until};
use serde_json::{Value, json};

on_each_store! {
    a_relay_publishes_what_becomes_of_the_jobs_that_its_file_names,
    a_relay_whose_file_names_other_kinds_records_these,
    what_is_reserved_is_not_emitted,
}

/// Returns the lines of a file, once there are at least `count`.
fn lines(place: &Place, file: &str, count: usize) -> Vec<Value> {
    until(&format!("there are {count} lines"), || {
        let text = std::fs::read_to_string(place.path(file)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() >= count && text.ends_with('\n') {
            assert_eq!(lines.len(), count, "{text}");
            return Ok(lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect());
        }
        Err(text)
    })
}

fn enqueue(place: &Place, kind: &str) -> String {
    let answer = place.run(&["enqueue", kind, "--json"]).json();
    answer["job"].as_str().unwrap().to_owned()
}

/// Starts a command and returns when its log contains a text.
fn start(place: &Place, command: &str, words: &str) -> Process {
    let mut process = Process::spawn(&mut place.command(&[command]));
    process.hear(words);
    process
}

const RECORDED: &str = "state changes are recorded";

fn a_relay_publishes_what_becomes_of_the_jobs_that_its_file_names(place: Place) {
    place.write(
        "milepost.toml",
        r#"
        [kinds.mail]
        exec = { program = "true" }
        [kinds.bill]
        exec = { program = "sh", args = ["-c", "exit 65"] }
        [kinds.other]
        exec = { program = "true" }

        [subscription.audit]
        changes = { kinds = ["mail", "bill"] }
        jsonl = { path = "audit.jsonl" }
        [subscription.failures]
        changes = { kinds = ["bill", "mail"] }
        event_types = ["milepost.job.failed"]
        jsonl = { path = "failures.jsonl" }
        [subscription.orders]
        jsonl = { path = "orders.jsonl" }
        "#,
    );
    place.run(&["migrate"]).ok();
    let relay = start(&place, "relay", RECORDED);
    until("changes of both are recorded", || {
        let sources = place.tamper("select cast(count(*) as text) from milepost.change_source");
        if sources == "4" { Ok(()) } else { Err(sources) }
    });
    let mail = enqueue(&place, "mail");
    let other = enqueue(&place, "other");
    let mails = lines(&place, "audit.jsonl", 1);
    assert_eq!(
        (&mails[0]["event_type"], &mails[0]["aggregate_id"]),
        (&json!("milepost.job.pending"), &json!(mail))
    );
    let work = start(&place, "work", " runs ");
    lines(&place, "audit.jsonl", 3);
    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    let bill = enqueue(&place, "bill");
    let all = lines(&place, "audit.jsonl", 6);
    let of = |job: &str| -> Vec<Value> {
        let mut of: Vec<Value> = all.iter().filter(|event| event["aggregate_id"] == job).cloned().collect();
        of.iter_mut().for_each(|event| event["payload"]["at"] = json!(null));
        of
    };
    for (job, kind, end) in [(&mail, "mail", "succeeded"), (&bill, "bill", "failed")] {
        let told = of(job);
        for (n, (event, state)) in told.iter().zip(["pending", "running", end]).enumerate() {
            assert_eq!(event["aggregate_type"], format!("milepost.job.{kind}"));
            assert_eq!(event["event_type"], format!("milepost.job.{state}"));
            assert_eq!(event["aggregate_seq"], n + 1);
            assert_eq!(event["payload"]["to"], state);
        }
    }
    assert_eq!(of(&other), [Value::Null; 0]);
    let failures = lines(&place, "failures.jsonl", 1);
    assert_eq!(failures[0]["aggregate_id"], json!(bill));
    assert_eq!(failures[0]["payload"]["error_code"], place.job(&bill)["history"][2]["error_code"]);
    assert_eq!(lines(&place, "orders.jsonl", 1)[0]["aggregate_type"], "order");
    work.leave();
    relay.leave();
    for subscription in ["audit", "failures"] {
        place.run(&["events", "forget", subscription]).ok();
    }
    let logged = || place.run(&["events", "tail", "--json"]).json().as_array().unwrap().len();
    let before = logged();
    enqueue(&place, "mail");
    assert_eq!(logged(), before, "no subscription needs them any more");
    assert_eq!(place.run(&["doctor"]).status, 0);
}

fn a_relay_whose_file_names_other_kinds_records_these(place: Place) {
    let file = |kind: &str| {
        format!(
            "[subscription.audit]\nchanges = {{ kinds = [\"{kind}\"] }}\njsonl = {{ path = \"audit.jsonl\" }}\n"
        )
    };
    place.write("milepost.toml", file("mail"));
    start(&place, "relay", RECORDED).leave();
    enqueue(&place, "mail");
    enqueue(&place, "bill");
    place.write("milepost.toml", file("bill"));
    let relay = start(&place, "relay", RECORDED);
    enqueue(&place, "mail");
    let bill = enqueue(&place, "bill");
    let told = lines(&place, "audit.jsonl", 1);
    assert_eq!(told[0]["aggregate_id"], json!(bill), "changes recorded for the old file are skipped");
    relay.leave();
}

fn what_is_reserved_is_not_emitted(place: Place) {
    let refused = place.run(&["events", "emit", "milepost.job.mail", "1", "milepost.job.failed"]);
    assert!(refused.status == 1 && refused.err.contains("kept for state changes"), "{}", refused.err);
}
