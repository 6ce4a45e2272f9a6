//! Tests of bulk jobs over files.

use std::fmt::Write as _;

use serde_json::json;

use crate::bulk::{Members, notes};
use crate::support::{Place, on_each_store};

on_each_store! {
    a_csv_file_becomes_the_targets_of_a_run,
    json_lines_come_from_a_file_or_a_pipe,
    each_row_of_a_long_file_is_done_once,
    a_malformed_line_is_told_with_its_place_and_nothing_is_started,
    a_column_that_the_file_lacks_is_refused,
    a_file_where_none_belongs_and_none_where_one_does_are_refused,
    a_dry_run_over_a_file_leaves_nothing,
    what_follows_a_run_over_a_file_reads_what_it_wrote,
}

const LETTER: &str = r#"
[bulk.letter]
columns = { member_id = "integer", "Full name" = "text", score = "number" }
"#;
const LETTER_APPLY: &str =
    "apply = \"insert into note (run, member) select :bulk_id, member_id from chunk\"\n";

fn letter(lines: &str) -> String {
    format!("{LETTER}{LETTER_APPLY}{lines}")
}

/// Returns a file of `members` members.
fn csv(members: u32) -> String {
    let mut csv = "score,member_id,Full name,more\n".to_owned();
    (1..=members).for_each(|n| writeln!(csv, "0.5,{n},\"Ada, {n}\",x").unwrap());
    csv
}

impl Members {
    fn start_file(&self, args: &[&str]) -> String {
        let started = self.bulk(&[&["start", "letter", "--json"], args].concat()).json();
        started["job"].as_str().unwrap().to_owned()
    }

    fn staged(&self) -> u64 {
        self.number("select count(*) from milepost.bulk_target")
    }

    fn runs(&self) -> usize {
        self.bulk(&["list", "--json"]).json().as_array().unwrap().len()
    }
}

fn a_csv_file_becomes_the_targets_of_a_run(place: Place) {
    let members = Members::new(place, 1, &letter(""));
    members.place.write("may.csv", csv(2_000));
    let started = members.bulk(&["start", "letter", "--from", "may.csv", "--key", "may"]).ok();
    assert!(started.out.ends_with("  started over 2,000 rows, 0 bad lines\n"), "{}", started.out);
    let id = started.out.split(' ').next().unwrap();
    let shown = members.bulk(&["show", id]).ok().out;
    assert!(shown.contains("file       may.csv, 2,000 rows"), "{shown}");
    let again = members.bulk(&["start", "letter", "--from", "may.csv", "--key", "may"]).ok();
    assert!(again.out.starts_with(id) && again.out.contains("duplicate"), "{}", again.out);
    assert_eq!(members.staged(), 2_000);

    let _work = members.work();
    let view = members.until_state(id, "succeeded");
    assert_eq!((&view["done"], &view["total"]), (&json!(2_000), &json!({ "rows": 2_000, "exact": true })));
    assert_eq!(view["file"], json!({ "name": "may.csv", "rows": 2_000 }));
    assert_eq!(members.notes(), 2_000);
    // The columns are also stored in the store.
    members.place.write("none.toml", "");
    members.place.tamper("delete from note");
    let of_store = ["--config", "none.toml", "start", "letter", "--from", "may.csv", "--json"];
    let id = members.bulk(&of_store).json()["job"].as_str().unwrap().to_owned();
    members.until_state(&id, "succeeded");
    assert_eq!(members.notes(), 2_000);
}

fn json_lines_come_from_a_file_or_a_pipe(place: Place) {
    let members = Members::new(place, 1, &letter(""));
    let line = |id: u32| format!("{{\"member_id\": {id}, \"Full name\": null, \"score\": 1e3, \"x\": []}}\n");
    members.place.write("a.jsonl", format!("{}\n{}", line(1), line(2)));
    let _work = members.work();
    members.until_state(&members.start_file(&["--from", "a.jsonl"]), "succeeded");
    let piped = ["bulk", "start", "letter", "--from", "-", "--json"];
    let started = members.place.run_with_input(&piped, &format!("{}{}", line(3), line(4))).json();
    let view = members.until_state(started["job"].as_str().unwrap(), "succeeded");
    assert_eq!(view["file"], json!({ "name": "standard input", "rows": 2 }));
    assert_eq!(members.notes(), 4);
}

fn each_row_of_a_long_file_is_done_once(place: Place) {
    const ROWS: u32 = 200_000;
    let members = Members::new(place, 1, &letter(""));
    members.place.write("long.csv", csv(ROWS));
    let started = members.bulk(&["start", "letter", "--from", "long.csv", "--json"]).json();
    assert_eq!((&started["rows"], &started["bad"]), (&json!(ROWS), &json!(0)));
    let _work = members.work();
    members.until_state(started["job"].as_str().unwrap(), "succeeded");
    assert_eq!(members.notes(), u64::from(ROWS));
}

fn a_malformed_line_is_told_with_its_place_and_nothing_is_started(place: Place) {
    let members = Members::new(place, 1, &letter(""));
    let mut long = csv(3_000);
    long.push_str("1,oops,Ada,x\n1,7\n");
    // A number that a database would write with more digits than it keeps.
    writeln!(long, "0.{},3001,Ada,x", "1".repeat(16_384)).unwrap();
    members.place.write("bad.csv", long);
    let start = ["start", "letter", "--from", "bad.csv"];
    let refused = members.bulk(&start);
    assert_eq!((refused.status, refused.out.as_str()), (1, ""));
    for words in [
        "3 lines are bad, so nothing was started",
        "bad.csv, line 3004, column 1: \"score\"",
        "bad.csv, line 3002, column 3: \"member_id\" is \"oops\", which is not a 64-bit integer",
        "bad.csv, line 3003, column 4: this row has 2 fields, the header names 4 columns",
        "--skip-bad BADFILE to write them to a file and stage the others",
    ] {
        assert!(refused.err.contains(words), "{words}:\n{}", refused.err);
    }
    assert_eq!((members.runs(), members.staged()), (0, 0));
    let skipped = members.bulk(&[&start[..], &["--skip-bad", "aside.csv", "--json"]].concat()).json();
    assert_eq!((&skipped["rows"], &skipped["bad"]), (&json!(3_000), &json!(3)));
    let aside = members.place.read("aside.csv");
    assert!(aside.starts_with("score,member_id,Full name,more\n1,oops,Ada,x\n1,7\n0.111"), "{aside}");

    members.place.write("bad.jsonl", "{\"member_id\": 1, \"Full name\": \"\", \"score\": {}}\n[1]\n{\n");
    let refused = members.bulk(&["start", "letter", "--from", "bad.jsonl"]);
    for words in [
        "bad.jsonl, line 1, column 44: \"score\" is an object or an array, but the column has the type number",
        "bad.jsonl, line 2, column 1: this is not a JSON object",
        "bad.jsonl, line 3, column",
    ] {
        assert!(refused.err.contains(words), "{words}:\n{}", refused.err);
    }
}

fn a_column_that_the_file_lacks_is_refused(place: Place) {
    let members = Members::new(place, 1, &letter(""));
    members.place.write("a.csv", "member_id,name,score\n1,Ada,2\n");
    let refused = members.bulk(&["start", "letter", "--from", "a.csv", "--skip-bad", "bad.csv"]);
    let why = "a.csv, line 1, column 1: there is no column \"Full name\", which the bulk job reads; the columns are \
               member_id, name, score";
    assert!(refused.status == 1 && refused.err.contains(why), "{}", refused.err);
    members.place.write("a.jsonl", "{\"member_id\": 1, \"score\": 2}\n");
    let refused = members.bulk(&["start", "letter", "--from", "a.jsonl"]);
    assert!(refused.err.contains("a.jsonl, line 1, column 1: there is no \"Full name\""), "{}", refused.err);
    assert_eq!((members.runs(), members.staged()), (0, 0));
}

fn a_file_where_none_belongs_and_none_where_one_does_are_refused(place: Place) {
    let members = Members::new(place, 1, &[letter(""), notes("popular", "")].concat());
    members.place.write("a.csv", csv(3));
    members.place.write("a.txt", csv(3));
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["start", "letter"],
            1,
            "letter reads its targets from a file with the columns Full name, member_id, score",
        ),
        (&["dry-run", "letter"], 1, "give one with --from FILE.csv"),
        (
            &["start", "popular", "--param", "topic=1", "--from", "a.csv"],
            1,
            "popular reads its targets from tables",
        ),
        (&["start", "letter", "--from", "none.csv"], 1, "cannot read none.csv"),
        (&["start", "letter", "--from", "a.txt"], 1, "add --format csv or --format jsonl"),
        (&["start", "letter", "--format", "csv"], 2, "--from"),
    ];
    for (args, status, words) in cases {
        let ran = members.bulk(args);
        assert!(ran.status == *status && ran.err.contains(words), "{args:?}: {} {}", ran.status, ran.err);
    }
    assert_eq!((members.runs(), members.staged()), (0, 0));
    members.bulk(&["start", "letter", "--from", "a.txt", "--format", "csv"]).ok();
}

fn a_dry_run_over_a_file_leaves_nothing(place: Place) {
    let members = Members::new(place, 1, &letter(""));
    members.place.write("a.csv", csv(1_000));
    let tried =
        members.bulk(&["dry-run", "letter", "--from", "a.csv", "--rows", "100", "--chunks", "2"]).ok();
    for words in ["targets   1,000", "nothing: everything was rolled back"] {
        assert!(tried.out.contains(words), "{words}:\n{}", tried.out);
    }
    members.place.tamper("insert into note values ('x', 7)");
    let failed = members.bulk(&["dry-run", "letter", "--from", "a.csv", "--json"]);
    assert_eq!(failed.status, 1, "{}", failed.err);
    let bill: serde_json::Value = serde_json::from_str(&failed.out).unwrap();
    let key = bill["failure"]["key"][0].to_string();
    assert_eq!(key.trim_matches('"'), "7", "{bill}");
    assert_eq!((members.notes(), members.staged(), members.runs()), (1, 0, 0));
}

fn what_follows_a_run_over_a_file_reads_what_it_wrote(place: Place) {
    let push = "[bulk.push]\nkey = [\"member\"]\n\
        source = \"select member from note where run = :previous and member > :cursor order by member limit :limit\"\n\
        apply = \"insert into push (member, topic) select member, :topic from chunk\"\n";
    let members = Members::new(place, 1, &(letter("then = \"push\"\n") + push));
    members.place.tamper("create table push (member bigint not null, topic text not null)");
    members.place.tamper("create index note_run on note (run, member)");
    members.place.write("a.csv", csv(300));
    let _work = members.work();
    let id = members.start_file(&["--from", "a.csv", "--param", "topic=x"]);
    members.until_state(&id, "succeeded");
    let next = members.bulk(&["list", "--name", "push", "--json"]).json();
    members.until_state(next[0]["id"].as_str().unwrap(), "succeeded");
    assert_eq!(members.number("select count(*) from push where topic = 'x'"), 300);
}
