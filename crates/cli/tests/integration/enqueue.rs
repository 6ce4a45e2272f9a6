//! Tests of enqueueing single jobs and files of jobs.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;

use crate::support::process::output;
use crate::support::{Place, on_each_store};

on_each_store! {
    one_job_is_enqueued_and_listed,
    the_same_key_again_answers_the_same_job,
    a_rule_for_duplicates_says_what_happened,
    a_job_that_cannot_be_accepted_says_why,
    csv_rows_become_objects_of_strings_unless_inference_is_asked_for,
    a_malformed_line_is_told_with_its_place_and_nothing_is_enqueued,
    bad_lines_are_set_aside_as_they_were,
    a_stray_quote_sets_aside_its_own_line_and_no_good_ones,
    every_line_of_a_bad_record_is_counted,
    a_row_of_blanks_is_a_value_of_the_only_column,
    json_lines_come_from_a_file_or_a_pipe,
    a_long_file_is_enqueued_once_however_often_it_is_given,
    a_file_that_cannot_be_used_is_named,
}

fn one_job_is_enqueued_and_listed(place: Place) {
    let place = place.emptied();
    let ran = place.run(&["enqueue", "mail", "--payload", r#"{"to": "ada"}"#, "--priority", "1"]).ok();
    let (id, words) = ran.out.trim().split_once("  ").unwrap();
    assert_eq!(words, "enqueued");
    assert!(ran.err.contains("created the store"), "{}", ran.err);
    let list = place.run(&["jobs", "list"]).ok();
    assert!(list.out.contains(id) && list.out.contains("pending"), "{}", list.out);
    let job = place.job(id);
    assert_eq!(job["payload"]["to"], "ada");
    assert_eq!((&job["priority"], &job["max_attempts"]), (&1.into(), &25.into()));
}

fn the_same_key_again_answers_the_same_job(place: Place) {
    let first = place.run(&["enqueue", "mail", "--key", "a", "--json"]).json();
    let second = place.run(&["enqueue", "mail", "--key", "a", "--json"]).json();
    assert_eq!(first["job"], second["job"]);
    assert_eq!((&first["duplicate"], &second["duplicate"]), (&false.into(), &true.into()));
    let words = place.run(&["enqueue", "mail", "--key", "a"]).ok().out;
    assert!(words.contains("duplicate"), "{words}");
    let other_kind = place.run(&["enqueue", "report", "--key", "a", "--json"]).json();
    assert_ne!(first["job"], other_kind["job"]);
}

fn a_rule_for_duplicates_says_what_happened(place: Place) {
    let ask = |payload: &str, rule: &[&str]| {
        place.run(&[&["enqueue", "mail", "--key", "a", "--payload", payload], rule].concat()).ok().out
    };
    let first = ask("1", &["--on-duplicate", "replace"]);
    let id = first.split_once("  ").unwrap().0;
    assert_eq!(first, format!("{id}  enqueued\n"));
    let second = ask("2", &["--on-duplicate", "replace"]);
    assert!(second.starts_with(&format!("{id}  replaced: ")), "{second}");
    assert_eq!(place.job(id)["payload"], 2);
    let moved = ask("3", &["--on-duplicate", "debounce", "--delay", "5m", "--max-delay", "1h"]);
    assert!(moved.starts_with(&format!("{id}  moved: ")), "{moved}");
    assert_eq!(place.job(id)["waiting_for"]["reason"], "time");
    let dropped = ask("4", &["--on-duplicate", "throttle", "--period", "1h", "--json"]);
    let dropped: serde_json::Value = serde_json::from_str(&dropped).unwrap();
    assert_eq!((&dropped["outcome"], &dropped["job"]), (&"dropped".into(), &id.into()));
    assert!(ask("5", &["--unique", "live"]).contains("duplicate: this key existed before"));
    place.run(&["jobs", "cancel", id]).ok();
    assert!(ask("6", &["--unique", "1h"]).contains("duplicate: this key existed before"));
    assert!(ask("7", &["--unique", "live"]).contains("enqueued"));

    let refused = place.run(&["enqueue", "mail", "--on-duplicate", "replace"]);
    assert!(
        refused.status == 1 && refused.err.contains("on_duplicate is invalid: it needs a key"),
        "{}",
        refused.err
    );
    let refused =
        place.run(&["enqueue", "mail", "--key", "b", "--on-duplicate", "debounce", "--delay", "1m"]);
    assert!(refused.err.contains("debounce needs delay_ms and max_delay_ms"), "{}", refused.err);
    let refused = place.run(&["enqueue", "mail", "--key", "b", "--on-duplicate", "merge"]);
    assert!(
        refused.status == 2 && refused.err.contains("expected one of: keep, replace, debounce, throttle"),
        "{}",
        refused.err
    );
}

fn a_job_that_cannot_be_accepted_says_why(place: Place) {
    let why = |args: &[&str]| {
        let ran = place.run(&[&["enqueue", "mail"], args].concat());
        assert_eq!(ran.status, 1, "{}", ran.err);
        ran.err
    };
    assert!(why(&["--payload", "{\"to\": }"]).contains("line 1 column 8"));
    assert!(why(&["--payload", r#""a\u0000""#]).contains("NUL"));
    assert!(why(&["--queue", ""]).contains("queue"));
    assert!(why(&["--max-attempts", "0"]).contains("max_attempts"));
    place.write("huge.jsonl", format!("\"{}\"\n", "x".repeat(1024 * 1024)));
    assert!(
        why(&["--from", "huge.jsonl"])
            .contains("huge.jsonl, line 1, column 1: the payload has 1048578 bytes")
    );
    assert_eq!(place.run(&["enqueue", "mail", "--priority", "5"]).status, 2);
    assert_eq!(place.run(&["enqueue", "mail", "--at", "soon"]).status, 2);
    assert_eq!(place.run(&["enqueue", "mail", "--key-column", "id"]).status, 2);
}

fn csv_rows_become_objects_of_strings_unless_inference_is_asked_for(place: Place) {
    place.write("orders.csv", "id,amount,paid,zip\r\n7,1.50,true,01234\r\n");
    place.run(&["enqueue", "mail", "--from", "orders.csv"]).ok();
    place.run(&["enqueue", "mail", "--from", "orders.csv", "--infer"]).ok();
    let ids = place.ids();
    let expected = serde_json::json!({"id": "7", "amount": "1.50", "paid": "true", "zip": "01234"});
    assert_eq!(place.job(&ids[1])["payload"], expected);
    let inferred = serde_json::json!({"id": 7, "amount": 1.5, "paid": true, "zip": "01234"});
    assert_eq!(place.job(&ids[0])["payload"], inferred);
}

fn a_malformed_line_is_told_with_its_place_and_nothing_is_enqueued(place: Place) {
    let mut csv = "id,name\n".to_owned();
    (0..3000).for_each(|n| writeln!(csv, "{n},x").unwrap());
    csv.push_str("3000,\"ada\nlovelace\",1\n");
    place.write("people.csv", csv);
    let ran = place.run(&["enqueue", "mail", "--from", "people.csv"]);
    assert_eq!(ran.status, 1);
    let place_of_flaw = "people.csv, line 3003, column 11: this row has 3 fields, the header names 2 columns";
    assert!(ran.err.contains(place_of_flaw), "{}", ran.err);
    place.write("a.jsonl", "{\"a\": 1}\n\n{\"é\": oops}\n");
    let ran = place.run(&["enqueue", "mail", "--from", "a.jsonl"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("a.jsonl, line 3, column 7: this is not JSON"), "{}", ran.err);
    place.run(&["migrate"]).ok();
    assert_eq!(place.ids(), [""; 0]);
}

fn bad_lines_are_set_aside_as_they_were(place: Place) {
    place.write("o.csv", "id,name\n1,a\n2\n,c\n\"4\",\"d \"\"x\"\"\",\r\n5,e\n");
    let args =
        ["enqueue", "mail", "--from", "o.csv", "--key-column", "id", "--skip-bad", "bad.csv", "--json"];
    let summary = place.run(&args).json();
    assert_eq!(summary, serde_json::json!({"enqueued": 2, "duplicates": 0, "bad": 3}));
    assert_eq!(place.read("bad.csv"), "id,name\n2\n,c\n\"4\",\"d \"\"x\"\"\",\r\n");
    place.write("bad.jsonl", "");
    std::fs::hard_link(place.path("bad.jsonl"), place.path("linked.jsonl")).unwrap();
    let linked = place.run(&["enqueue", "mail", "--from", "bad.jsonl", "--skip-bad", "linked.jsonl"]);
    assert!(linked.status == 1 && linked.err.contains("would overwrite linked.jsonl"), "{}", linked.err);
    place.write("milepost.toml", "# Settings\n");
    let existing = place.run(&["enqueue", "mail", "--from", "bad.jsonl", "--skip-bad", "milepost.toml"]);
    assert!(existing.status == 1 && existing.err.contains("give the name of a new file"), "{}", existing.err);
    assert_eq!(place.read("milepost.toml"), "# Settings\n");
    let given = "{\"a\": 1}\nbad\n";
    place.write("given.jsonl", given);
    let args = ["enqueue", "mail", "--from", "-", "--format", "jsonl", "--skip-bad", "given.jsonl"];
    let ran = place.command(&args).stdin(File::open(place.path("given.jsonl")).unwrap()).output().unwrap();
    assert!(!ran.status.success(), "{ran:?}");
    assert_eq!(place.read("given.jsonl"), given);
    let ran = place.run(&["enqueue", "mail", "--from", "bad.jsonl", "--skip-bad", "./bad.jsonl"]);
    assert!(ran.status == 1 && ran.err.contains("overwrite"), "{}", ran.err);
}

fn a_stray_quote_sets_aside_its_own_line_and_no_good_ones(place: Place) {
    let mut csv = "id,name\n1,\"oops\n".to_owned();
    (2..50_002).for_each(|n| writeln!(csv, "{n},x").unwrap());
    csv.push_str("50002,\"y\"\n50003,z\n");
    place.write("o.csv", csv);
    let ran = place.run(&["enqueue", "mail", "--from", "o.csv"]);
    let told = "o.csv, line 2, column 3: the quote that opens here is closed 50001 lines further down";
    assert!(ran.status == 1 && ran.err.contains(told), "{}", ran.err);
    let summary =
        place.run(&["enqueue", "mail", "--from", "o.csv", "--skip-bad", "bad.csv", "--json"]).json();
    assert_eq!(summary, serde_json::json!({"enqueued": 50_002, "duplicates": 0, "bad": 1}));
    assert_eq!(place.read("bad.csv"), "id,name\n1,\"oops\n");
    let mode = std::fs::metadata(place.path("bad.csv")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others could read the bad lines");
    let again = place.run(&["enqueue", "mail", "--from", "o.csv", "--skip-bad", "bad.csv"]);
    assert!(again.status == 1 && again.err.contains("remove it"), "{}", again.err);
    let piped = place.run(&["enqueue", "mail", "--from", "o.csv", "--skip-bad", "/dev/stderr", "--json"]);
    assert!(piped.ok().err.contains("1,\"oops\n"));
}

fn every_line_of_a_bad_record_is_counted(place: Place) {
    place.write("o.csv", "id,name\n1,\"a\nb\nc\",2\n3,d\n");
    let ran = place.run(&["enqueue", "mail", "--from", "o.csv"]);
    assert!(ran.err.contains("3 lines are bad, so nothing was enqueued"), "{}", ran.err);
    let summary =
        place.run(&["enqueue", "mail", "--from", "o.csv", "--skip-bad", "bad.csv", "--json"]).json();
    assert_eq!(summary, serde_json::json!({"enqueued": 1, "duplicates": 0, "bad": 3}));
}

fn a_row_of_blanks_is_a_value_of_the_only_column(place: Place) {
    place.write("one.csv", "\u{feff}name\n  \n\n\u{feff}ada\n");
    place.run(&["enqueue", "mail", "--from", "one.csv"]).ok();
    let names: Vec<_> = place.ids().iter().map(|id| place.job(id)["payload"]["name"].clone()).collect();
    assert_eq!(names, ["\u{feff}ada", "  "]);
    place.write("two.csv", "id,name\n1,a\n  \n2,b\n");
    let summary = place.run(&["enqueue", "mail", "--from", "two.csv", "--json"]).json();
    assert_eq!(summary["enqueued"], 2);
}

fn json_lines_come_from_a_file_or_a_pipe(place: Place) {
    let lines = "{\"id\": \"a\"}\n{\"id\": 7}\r\n\n\"no object\"";
    place.write("jobs.jsonl", lines);
    let summary = place.run(&["enqueue", "mail", "--from", "jobs.jsonl"]).ok().out;
    assert!(summary.starts_with("3 enqueued, 0 duplicates, 0 bad lines"), "{summary}");
    let keyed = ["enqueue", "mail", "--from", "-", "--key-column", "id"];
    let ran = place.run_with_input(&keyed, lines);
    assert!(ran.err.contains("standard input, line 4, column 1"), "{}", ran.err);
    let lines = lines.strip_suffix("\n\"no object\"").unwrap();
    let summary = place.run_with_input(&keyed, lines).ok().out;
    assert!(summary.starts_with("2 enqueued"), "{summary}");
    let keys = place.run(&["jobs", "list", "--key", "7", "--json"]).json();
    assert_eq!(keys.as_array().unwrap().len(), 1);
    let rows =
        place.run_with_input(&["enqueue", "mail", "--from", "-", "--format", "csv"], "id\n1\n2\n").ok().out;
    assert!(rows.starts_with("2 enqueued"), "{rows}");
}

fn a_long_file_is_enqueued_once_however_often_it_is_given(place: Place) {
    let mut lines = String::new();
    (0..100_000).for_each(|n| writeln!(lines, "{{\"id\":{n}}}").unwrap());
    place.write("long.jsonl", lines);
    let args = ["enqueue", "mail", "--from", "long.jsonl", "--key-column", "id", "--json"];
    let summary = place.run(&args).json();
    assert_eq!(summary, serde_json::json!({"enqueued": 100_000, "duplicates": 0, "bad": 0}));
    let summary = place.run(&args).json();
    assert_eq!(summary, serde_json::json!({"enqueued": 0, "duplicates": 100_000, "bad": 0}));
    let queues = place.run(&["queues", "list", "--json"]).json();
    assert_eq!(queues[0]["counts"]["pending"], 100_000);
}

fn a_file_that_cannot_be_used_is_named(place: Place) {
    let why = |args: &[&str]| {
        let ran = place.run(&[&["enqueue", "mail", "--from"], args].concat());
        assert_eq!(ran.status, 1, "{}", ran.err);
        ran.err
    };
    place.write("jobs.txt", "");
    place.write("empty.csv", "");
    place.write("people.csv", "id,name\n");
    assert!(why(&["missing.csv"]).contains("missing.csv"));
    assert!(why(&["jobs.txt"]).contains("--format"));
    assert!(why(&["empty.csv"]).contains("empty.csv is empty"));
    assert!(why(&["people.csv", "--key-column", "key"]).contains("the columns are id, name"));
    assert!(why(&["/dev/zero", "--format", "jsonl"]).contains("it is a device"));
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    let endless = output(place.command(&["enqueue", "mail", "--from", "-"]).stdin(zeros));
    assert_eq!(endless.status.code(), Some(1));
    assert!(String::from_utf8(endless.stderr).unwrap().contains("standard input: it is a device"));
}
