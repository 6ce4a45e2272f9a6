//! Tests of `milepost audit`: changes by this command are listed with actor and reason.

use crate::support::{Place, on_each_store};
use serde_json::{Value, json};

on_each_store! {
    what_a_command_changes_is_told_with_who_and_why,
    the_reason_of_every_command_is_in_the_audit,
    commands_that_change_nothing_are_not_told,
    the_audit_is_listed_in_pages_by_who_what_and_subject,
}

/// Returns the whole audit, newest first.
fn audit(place: &Place, args: &[&str]) -> Vec<Value> {
    let listed = place.run(&[&["audit", "--json"], args].concat()).json();
    listed.as_array().unwrap().clone()
}

fn what_a_command_changes_is_told_with_who_and_why(place: Place) {
    let id = place.enqueue(&[]);
    place.run(&["jobs", "cancel", &id, "--reason", "ordered twice"]).ok();
    place.run(&["queues", "pause", "mail"]).ok();
    place.run(&["limits", "set", "--kind", "mail", "--rate", "10/s"]).ok();
    let audit = audit(&place, &[]);
    let told: Vec<_> = audit.iter().rev().map(|it| (&it["what"], &it["subject"], &it["why"])).collect();
    let (null, why) = (&Value::Null, &json!("ordered twice"));
    let expected = [
        (&json!("job.create"), &json!(id), null),
        (&json!("job.cancel"), &json!(id), why),
        (&json!("queue.pause"), &json!("mail"), null),
        (&json!("limit.put"), &json!("kind mail"), null),
    ];
    assert_eq!(told, expected);
    assert!(audit.iter().all(|it| it["who"].as_str().unwrap().contains('@')), "{audit:#?}");
    assert_eq!(place.job(&id)["history"][1]["note"], "ordered twice", "history has the reason, too");
    let shown = place.run(&["audit"]).ok().out;
    assert!(shown.contains("state: pending → canceled") && shown.contains("ordered twice"), "{shown}");
}

fn the_reason_of_every_command_is_in_the_audit(place: Place) {
    let id = place.enqueue(&["--reason", "spring"]);
    let mut expected = vec!["job.create"];
    let mut change = |what: &'static str, line: &[&str]| {
        expected.push(what);
        place.run(&[line, &["--reason", "spring"]].concat()).ok().out
    };
    change("job.abort", &["jobs", "abort", &id]);
    change("job.resume", &["jobs", "retry", "--state", "aborted", "--yes"]);
    change("queue.pause", &["queues", "pause", "mail"]);
    change("queue.resume", &["queues", "resume", "mail"]);
    change("limit.put", &["limits", "set", "--kind", "mail", "--rate", "10/s"]);
    change("limit.remove", &["limits", "remove", "--kind", "mail"]);
    change("schedule.put", &["schedules", "add", "nightly", "--every", "1d", "--kind", "report"]);
    change("schedule.pause", &["schedules", "pause", "nightly"]);
    change("schedule.resume", &["schedules", "resume", "nightly"]);
    change("schedule.run", &["schedules", "run-now", "nightly"]);
    change("schedule.remove", &["schedules", "remove", "nightly"]);
    change("event.emit", &["events", "emit", "order", "17", "order.paid"]);
    change("consumer.put", &["inbox", "set", "billing", "--parked-max", "5"]);
    change("inbox.expect", &["inbox", "expect", "billing", "order/17", "4"]);
    let token = change("token.create", &["tokens", "create", "ci", "--role", "viewer"]);
    change("token.revoke", &["tokens", "revoke", token.split('_').nth(1).unwrap()]);
    let audit = audit(&place, &[]);
    let told: Vec<_> = audit.iter().rev().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(told, expected);
    assert!(audit.iter().all(|it| it["why"] == "spring"), "{audit:#?}");
}

fn commands_that_change_nothing_are_not_told(place: Place) {
    place.run(&["migrate"]).ok();
    let empty = place.run(&["audit"]).ok();
    assert!(empty.err.contains("no audited actions"), "{}", empty.err);
    let id = place.enqueue(&["--key", "k"]);
    place.enqueue(&["--key", "k"]);
    place.run(&["queues", "resume", "mail"]).ok();
    assert_eq!(place.run(&["jobs", "resume", &id]).status, 1);
    place.run(&["jobs", "list"]).ok();
    assert_eq!(audit(&place, &[]).len(), 1);
    let long = "x".repeat(1001);
    let refused = place.run(&["jobs", "cancel", &id, "--reason", &long]);
    assert!(refused.status == 1 && refused.err.contains("1000 characters"), "{}", refused.err);
    assert_eq!(place.job(&id)["state"], "pending");
}

fn the_audit_is_listed_in_pages_by_who_what_and_subject(place: Place) {
    place.run(&["migrate"]).ok();
    for queue in ["a", "b", "c"] {
        place.run(&["queues", "pause", queue]).ok();
    }
    place.run(&["queues", "resume", "b"]).ok();
    let subjects = |args: &[&str]| -> Vec<String> {
        let listed = audit(&place, args).into_iter();
        listed.map(|it| it["subject"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(subjects(&[]), ["b", "c", "b", "a"]);
    assert_eq!(subjects(&["--what", "queue.pause"]), ["c", "b", "a"]);
    assert_eq!(subjects(&["--subject", "b", "--what", "queue.resume"]), ["b"]);
    assert!(subjects(&["--who", "nobody@nowhere"]).is_empty());
    place.run(&["tokens", "create", "ci", "--role", "viewer"]).ok();
    assert_eq!(subjects(&["--what", "token.create"]), ["ci"]);
    let first = place.run(&["audit", "--json", "--limit", "4"]).ok();
    let last = first.err.trim().rsplit(' ').next().unwrap();
    assert_eq!(subjects(&["--before", last]), ["a"], "{}", first.err);
    let unknown = place.run(&["audit", "--what", "queue.paus"]);
    assert!(unknown.status == 2 && unknown.err.contains("queue.pause"), "{}", unknown.err);
}
