use serde_json::json;

use super::*;
use crate::dag::checked::Dag;
use crate::dag::definition::{Definition, Task};

fn faults(task: Task) -> Vec<String> {
    let dag = Definition::new("d").task("a", Task::job("k")).task("w", task.after(["a"]));
    match Dag::check(dag) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid.faults.iter().map(ToString::to_string).collect(),
    }
}

fn fault_of(wait: Wait) -> String {
    faults(Task::wait(wait)).join("; ")
}

const DAY: Duration = Duration::from_hours(24);

#[test]
fn a_wait_has_exactly_one_of_signal_for_and_until() {
    assert_eq!(fault_of(Wait::signal("approved")), "");
    assert_eq!(fault_of(Wait::time(DAY)), "");
    assert_eq!(fault_of(Wait::until("2027-01-01T00:00:00Z")), "");
    let kind = "task \"w\", wait: a wait has exactly one of signal, for and until";
    assert_eq!(fault_of(Wait::default()), kind);
    assert_eq!(fault_of(Wait { duration: Some(DAY), ..Wait::signal("approved") }), kind);
}

#[test]
fn until_is_a_time_or_has_an_expression() {
    assert!(fault_of(Wait::until("nonsense")).contains("until: \"nonsense\" is not a time (RFC 3339)"));
    assert!(fault_of(Wait::until("2027-01-01T00:00:00")).contains("is not a time"));
    assert_eq!(fault_of(Wait::until("${ input.day }T00:00:00Z")), "");
}

#[test]
fn an_empty_list_of_choices_is_refused() {
    let read = |json: Value| serde_json::from_value::<Wait>(json).map_err(|e| e.to_string());
    assert!(read(json!({"signal": "s", "choices": []})).unwrap_err().contains("must not be empty"));
    assert_eq!(read(json!({"signal": "s", "choices": ["a"]})).unwrap().choices, ["a"]);
}

#[test]
fn settings_of_signals_need_a_signal() {
    assert!(fault_of(Wait::time(DAY).choices(["yes"])).contains("choices is only for a wait with a signal"));
    let timeout = Wait::until("2027-01-01T00:00:00Z").timeout(DAY, OnTimeout::Skip);
    assert!(fault_of(timeout).contains("timeout is only for a wait with a signal"));
    let on_timeout = Wait { on_timeout: Some(OnTimeout::Skip), ..Wait::signal("approved") };
    assert!(fault_of(on_timeout).contains("on_timeout needs a timeout"));
}

#[test]
fn times_names_choices_and_schemas_are_checked() {
    assert!(fault_of(Wait::time(Duration::ZERO)).contains("for must be from 1ms to 10 years"));
    assert!(fault_of(Wait::signal("a\nb")).contains("signal"));
    assert!(fault_of(Wait::signal("s").choices(["yes", "yes"])).contains("\"yes\" is given twice"));
    assert!(fault_of(Wait::signal("s").choices((0..21).map(|n| n.to_string()))).contains("at most 20"));
    let schema = fault_of(Wait::signal("s").schema(json!({"type": "sometimes"})));
    assert!(schema.contains("the schema of the signal is invalid"), "{schema}");
}

#[test]
fn a_task_with_a_wait_has_no_work_and_no_settings_of_jobs() {
    let both = Task { kind: Some("k".to_owned()), ..Task::wait(Wait::signal("s")) };
    assert!(faults(both)[0].contains("exactly one kind of work"));
    let payload = Task::wait(Wait::signal("s")).payload(json!({"a": 1}));
    assert!(faults(payload)[0].contains("it cannot have payload"));
    let attempts = Task { max_attempts: 2, ..Task::wait(Wait::signal("s")) };
    assert!(faults(attempts)[0].contains("it cannot have max_attempts"));
}

#[test]
fn only_one_task_waits_for_a_signal() {
    let wait = || Task::wait(Wait::signal("s"));
    let dag = Definition::new("d").task("a", wait()).task("b", wait());
    let invalid = Dag::check(dag).unwrap_err().to_string();
    assert!(invalid.contains("task \"b\", wait: the task \"a\" waits for the same signal"), "{invalid}");
}

#[test]
fn until_reads_only_predecessors() {
    assert_eq!(fault_of(Wait::until("${ tasks.a.output.at }")), "");
    assert!(fault_of(Wait::until("${ tasks.b.output.at }")).contains("not one of its predecessors"));
    assert!(fault_of(Wait::until("${ input.at")).contains("not closed"));
}

#[test]
fn a_payload_has_one_of_the_choices_and_matches_the_schema() {
    let wait = Wait::signal("s").choices(["approve", "reject"]).schema(json!({"required": ["by"]}));
    assert_eq!(wait.check_payload(&json!({"choice": "approve", "by": "ann"})), Ok(()));
    let choice = wait.check_payload(&json!({"choice": "maybe", "by": "ann"})).unwrap_err();
    assert_eq!(choice, "its member \"choice\" must be one of: approve, reject");
    assert!(wait.check_payload(&json!(null)).is_err());
    let schema = wait.check_payload(&json!({"choice": "reject"})).unwrap_err();
    assert!(schema.contains("does not match the schema of the wait") && schema.contains("by"), "{schema}");
}

#[test]
fn a_definition_with_waits_reads_back_as_itself() {
    let written = json!({"name": "d", "tasks": {
        "a": {"wait": {"signal": "approved", "timeout": "3days", "on_timeout": "skip", "choices": ["yes"]}},
        "b": {"wait": {"for": "2h"}, "after": ["a"]},
        "c": {"wait": {"until": "${ input.at }"}, "when": "input.late"},
    }});
    let read: Definition = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), written);
    assert!(Dag::check(read).is_ok());
}
