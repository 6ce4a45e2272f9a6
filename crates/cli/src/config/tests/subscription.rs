//! Tests of `[subscription.NAME]`.

use milepost_core::event::Changes;

use super::*;

fn with(lines: &str) -> String {
    format!("[subscription.audit]\nnull = {{}}\n{lines}\n")
}

#[test]
fn state_changes_are_read_in_full() {
    let text = with(
        "changes = { kinds = [\"mail\", \"notices\"], dags = [\"close\"] }\nevent_types = [\"milepost.job.failed\"]",
    );
    let config = parse(&text, Path::new("/"), |_| None).unwrap();
    let subscription = config.subscriptions["audit"].options("audit", "here".to_owned()).subscription;
    let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(subscription.changes, Changes { kinds: named(&["mail", "notices"]), dags: named(&["close"]) });
    let of = ["milepost.job.mail", "milepost.job.notices", "milepost.batch.close"];
    assert_eq!(subscription.filter.aggregate_types, of);
    assert_eq!(subscription.filter.event_types, ["milepost.job.failed"]);
    let plain = parse(&with(""), Path::new("/"), |_| None).unwrap();
    assert!(plain.subscriptions["audit"].options("audit", "here".to_owned()).subscription.changes.is_empty());
}

#[test]
fn state_changes_that_could_not_be_recorded_are_refused() {
    let long = "k".repeat(188);
    let too_long = format!("changes = {{ kinds = [\"{long}\"] }}");
    let cases = [
        (
            "changes = { kinds = [\"mail\"] }\naggregate_types = [\"order\"]",
            "4:19 the subscription audit has aggregate_types and changes",
            "two subscriptions",
        ),
        ("changes = {}", "3:11 changes of the subscription audit has no kinds", "add some"),
        ("changes = { kinds = [\"\"] }", "3:11 the kind of the state changes", "187"),
        (too_long.as_str(), "3:11 the kind of the state changes", "187"),
        ("changes = { kind = [\"mail\"] }", "3:13 unknown key kind in subscription.audit.changes", "kinds"),
        (
            "aggregate_types = [\"order\", \"milepost.job.mail\"]",
            "3:29 aggregate_types of the subscription audit contains a type of state changes",
            "changes = {",
        ),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&with(lines), &[(begins, remedy)]);
    }
}

#[test]
fn a_list_of_types_has_at_least_one() {
    assert_faults(&with("aggregate_types = []"), &[("3:19 subscription.audit.aggregate_types", "")]);
    assert_faults(&with("event_types = []"), &[("3:15 subscription.audit.event_types", "")]);
}
