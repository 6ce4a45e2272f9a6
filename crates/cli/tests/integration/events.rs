//! Tests of emitting events and reading the log.

use std::io::{BufRead, BufReader};

use crate::support::{Place, on_each_store};
use serde_json::Value;

on_each_store! {
    an_event_is_emitted_and_shown,
    the_same_event_again_is_a_duplicate,
    an_event_that_cannot_be_emitted_says_why_and_what_to_do,
    one_event_cannot_be_named_together_with_all_aggregates,
    sequences_that_are_given_are_checked,
    a_payload_comes_from_a_file_as_it_is,
    the_log_is_shown_in_pages_and_by_what_is_wanted,
    an_empty_log_is_an_empty_array,
    a_follower_shows_what_is_added_until_it_is_interrupted,
}

const ID: &str = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

fn emit(place: &Place, order: &str, event_type: &str) {
    place.run(&["events", "emit", "order", order, event_type]).ok();
}

fn tail(place: &Place, more: &[&str]) -> Vec<(i64, String)> {
    let listed = place.run(&[&["events", "tail", "--json"], more].concat()).json();
    let of =
        |event: &Value| (event["pos"].as_i64().unwrap(), event["event_type"].as_str().unwrap().to_owned());
    listed.as_array().unwrap().iter().map(of).collect()
}

fn an_event_is_emitted_and_shown(place: Place) {
    let place = place.emptied();
    let payload = ["--payload", r#"{"cents": 12.00}"#, "--header", "tenant=a=b", "--header", "b="];
    let ran = place.run(&[&["events", "emit", "order", "17", "order.paid"][..], &payload].concat()).ok();
    let (id, words) = ran.out.trim().split_once("  ").unwrap();
    assert_eq!(words, "event 1 of order/17");
    assert!(ran.err.contains("created the store"), "{}", ran.err);
    let table = place.run(&["events", "tail"]).ok().out;
    assert!(
        table.contains("AGGREGATE") && table.contains("order/17") && table.contains("order.paid"),
        "{table}"
    );
    let listed = place.run(&["events", "tail", "--json"]).ok().out;
    assert!(listed.contains(r#"{"cents": 12.00}"#), "byte by byte: {listed}");
    let event = &serde_json::from_str::<Value>(&listed).unwrap()[0];
    assert_eq!((&event["event_id"], &event["aggregate_seq"]), (&id.into(), &1.into()));
    assert_eq!((&event["headers"]["tenant"], &event["headers"]["b"]), (&"a=b".into(), &"".into()));
}

fn the_same_event_again_is_a_duplicate(place: Place) {
    let args = ["events", "emit", "order", "17", "order.paid", "--id", ID, "--json"];
    let first = place.run(&args).json();
    assert_eq!((&first["event_id"], &first["duplicate"]), (&ID.into(), &false.into()));
    assert_eq!(place.run(&args).json()["duplicate"], true);
    let words = place.run(&args[..7]).ok().out;
    assert!(words.contains("it is event 1 of order/17 already"), "{words}");
    let other = place.run(&["events", "emit", "order", "17", "order.gone", "--id", ID]);
    assert_eq!(other.status, 1);
    assert!(
        other.err.contains("exists with other content") && other.err.contains("another --id"),
        "{}",
        other.err
    );
    assert_eq!(tail(&place, &[]).len(), 1);
}

fn an_event_that_cannot_be_emitted_says_why_and_what_to_do(place: Place) {
    let why = |status: i32, more: &[&str]| {
        let ran = place.run(&[&["events", "emit", "order", "17", "order.paid"], more].concat());
        assert_eq!(ran.status, status, "{}", ran.err);
        ran.err
    };
    assert!(why(1, &["--payload", "{\"to\": }"]).contains("--payload is not JSON"));
    assert!(why(1, &["--payload", "@none.json"]).contains("cannot read the payload from none.json"));
    assert!(why(1, &["--header", "a b=1"]).contains("brokers refuse"));
    assert!(why(1, &["--header", "a=1", "--header", "a=2"]).contains("given twice"));
    assert!(why(1, &["--seq", "0"]).contains("not a number from 1 to 9000000000000000000"));
    assert!(why(2, &["--header", "a"]).contains("NAME=VALUE"));
    assert!(why(2, &["--id", "17"]).contains("is a UUID"));
    assert!(why(2, &["--allow-gap"]).contains("--seq"));
    let nameless = place.run(&["events", "emit", "order", "", "order.paid"]);
    assert!(nameless.status == 1 && nameless.err.contains("id of the aggregate"), "{}", nameless.err);
    assert_eq!(place.run(&["events", "tail", "--aggregate", "order"]).status, 2);
    assert!(
        place.run(&["events", "tail"]).status == 1 || tail(&place, &[]).is_empty(),
        "nothing was emitted"
    );
}

fn one_event_cannot_be_named_together_with_all_aggregates(place: Place) {
    for verb in ["retry", "skip"] {
        let ran = place.run(&["events", verb, "audit", "--all", "--event", ID]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains("--event") && ran.err.contains("cannot be used with"), "{}", ran.err);
    }
}

fn sequences_that_are_given_are_checked(place: Place) {
    let run = |more: &[&str]| place.run(&[&["events", "emit", "order", "17", "t"], more].concat());
    run(&["--seq", "7"]).ok();
    let repeated = run(&["--seq", "7"]);
    assert!(repeated.status == 1 && repeated.err.contains("is at sequence 7 already"), "{}", repeated.err);
    assert!(repeated.err.contains("without --seq"), "{}", repeated.err);
    let gap = run(&["--seq", "9"]);
    assert!(gap.status == 1 && gap.err.contains("--allow-gap"), "{}", gap.err);
    assert!(run(&["--seq", "9", "--allow-gap"]).ok().out.contains("event 9 of order/17"));
}

fn a_payload_comes_from_a_file_as_it_is(place: Place) {
    place.write("paid.json", "{\n  \"cents\": 1e3\n}\n");
    place.run(&["events", "emit", "order", "17", "order.paid", "--payload", "@paid.json"]).ok();
    let listed = place.run(&["events", "tail", "--json"]).ok().out;
    assert!(listed.contains("{\n  \"cents\": 1e3\n}"), "{listed}");
    let table = place.run(&["events", "tail"]).ok().out;
    assert_eq!(table.lines().count(), 2, "one line an event: {table}");
}

fn the_log_is_shown_in_pages_and_by_what_is_wanted(place: Place) {
    for (order, event_type) in [("1", "a"), ("2", "b"), ("1", "c"), ("1", "a")] {
        emit(&place, order, event_type);
    }
    let all = tail(&place, &[]);
    let types: Vec<&str> = all.iter().map(|(_, event_type)| event_type.as_str()).collect();
    assert_eq!(types, ["a", "b", "c", "a"], "oldest first");
    assert_eq!(tail(&place, &["--limit", "2"]), all[2..]);
    assert_eq!(tail(&place, &["--after", "0", "--limit", "2"]), all[..2]);
    assert_eq!(tail(&place, &["--after", &all[1].0.to_string()]), all[2..]);
    assert_eq!(tail(&place, &["--aggregate", "order/2"]), all[1..2]);
    assert_eq!(tail(&place, &["--type", "a"]), [all[0].clone(), all[3].clone()]);
    assert_eq!(tail(&place, &["--aggregate", "order/1", "--type", "a", "--limit", "1"]), all[3..]);
    let cut = place.run(&["events", "tail", "--after", "0", "--limit", "1"]).ok();
    assert!(cut.err.contains(&format!("--after {}", all[0].0)), "{}", cut.err);
    assert!(place.run(&["events", "tail", "--limit", "1"]).ok().err.contains("only the newest 1"));
}

fn an_empty_log_is_an_empty_array(place: Place) {
    place.run(&["migrate"]).ok();
    assert_eq!(place.run(&["events", "tail", "--json"]).ok().out, "[]\n");
    assert!(place.run(&["events", "tail"]).ok().err.contains("no events"));
}

fn a_follower_shows_what_is_added_until_it_is_interrupted(place: Place) {
    emit(&place, "1", "before");
    let mut follower = place.command(&["events", "tail", "--follow", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        event["event_type"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "before");
    emit(&place, "1", "first");
    assert_eq!(next(), "first");
    emit(&place, "2", "second");
    assert_eq!(next(), "second");
    #[cfg(unix)]
    {
        let pid = nix::unistd::Pid::from_raw(follower.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        assert!(follower.wait().unwrap().success());
    }
    assert!(lines.next().is_none(), "no event was shown twice");
    let _ = follower.kill();
    follower.wait().unwrap();
}
