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
    let subscription =
        config.subscriptions["audit"].options("audit", "here".to_owned()).unwrap().subscription;
    let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(subscription.changes, Changes { kinds: named(&["mail", "notices"]), dags: named(&["close"]) });
    let of = ["milepost.job.mail", "milepost.job.notices", "milepost.batch.close"];
    assert_eq!(subscription.filter.aggregate_types, of);
    assert_eq!(subscription.filter.event_types, ["milepost.job.failed"]);
    let plain = parse(&with(""), Path::new("/"), |_| None).unwrap();
    assert!(
        plain.subscriptions["audit"]
            .options("audit", "here".to_owned())
            .unwrap()
            .subscription
            .changes
            .is_empty()
    );
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

#[test]
fn work_that_events_start_is_read_with_its_filter() {
    use milepost_relay::publisher::Destination;
    let text = "[subscription.bills]\nevent_types = [\"order.placed\"]\nfilter = \"event.payload.total > 100\"\n\
                enqueue = { kind = \"bill\", queue = \"billing\", priority = 1, timeout = \"30s\", key = \"$${ event.id }\", \
                group = \"$${ event.aggregate_id }\", payload = { order = \"$${ event.aggregate_id }\" } }\n\
                [subscription.settle]\nstart = { dag = \"settlement\", input = { day = \"$${ event.payload.day }\" } }\n\
                [subscription.approve]\nsignal = { batch = \"$${ event.payload.batch }\", name = \"approved\" }\n";
    let config = parse(text, Path::new("/"), |_| None).unwrap();
    for name in ["bills", "settle", "approve"] {
        let destination = config.subscriptions[name].destination(name, Path::new("/")).unwrap();
        assert!(matches!(destination, Destination::Work(_)), "{name}");
    }
    let options = config.subscriptions["bills"].options("bills", "here".to_owned()).unwrap();
    assert!(options.condition.is_some());
}

#[test]
fn work_that_no_event_could_start_is_refused_at_its_place() {
    let with = |lines: &str| format!("[subscription.bills]\n{lines}\n");
    let cases = [
        (
            "enqueue = { kind = \"bill\", payload = { items = [1, \"$${ event.payoad }\"] } }",
            "2:52 enqueue of the subscription bills: /payload/items/1: there is no variable \"event.payoad\"",
            "start-a-job-when-something-happens",
        ),
        ("enqueue = { kind = \"\" }", "2:11 enqueue of the subscription bills: the kind", "start-a-job"),
        ("enqueue = { queue = \"a\" }", "2:11 subscription.bills.enqueue", "kind"),
        (
            "start = { dag = \"d\", key = \"$${ event.id\" }",
            "2:28 start of the subscription bills: /key: the expression that begins with ${ is not closed",
            "start-a-job",
        ),
        (
            "null = {}\nfilter = \"event.total >\"",
            "3:10 the filter of the subscription bills is invalid: at line 1",
            "event.type == 'order.placed'",
        ),
        ("filter = \"true\"", "1:15 the subscription bills has no sink", "enqueue, start, signal"),
        (
            "null = {}\nsignal = { batch = \"b\", name = \"n\" }",
            "3:10 the subscription bills has several sinks: null, signal",
            "keep one",
        ),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&with(lines), &[(begins, remedy)]);
    }
}
