//! Tests of operators controlling runs.

use serde_json::{Value, json};

use crate::bulk::{Members, notes, section};
use crate::support::{Place, on_each_store};

on_each_store! {
    an_aborted_run_goes_on_where_it_was,
    a_rate_that_is_set_counts_from_the_next_chunk_on,
    targets_that_failed_are_listed_and_tried_again,
    more_failures_than_the_budget_abort_the_run,
    a_closed_window_holds_a_run_and_is_named,
    a_throttle_holds_a_run_as_long_as_it_says_so_and_is_named,
}

/// Slow, in small chunks, so that the run does not end before it was controlled.
const SLOW: &str = "rate = 20\nchunk = { min = 1, max = 20 }\n";

fn an_aborted_run_goes_on_where_it_was(place: Place) {
    let members = Members::new(place, 1_000, &notes("popular", SLOW));
    let _work = members.work();
    let id = members.start("popular");
    members.until(&id, "some are done", |view| view["done"].as_u64() > Some(0));
    let aborted = members.bulk(&["abort", &id, "--reason", "wrong text"]).ok().out;
    assert!(aborted.contains("no further chunk starts"), "{aborted}");
    let view = members.until_state(&id, "aborted");
    let done = view["done"].as_u64().unwrap();
    assert!((1..1_000).contains(&done), "{view}");
    assert_eq!(members.notes(), done);
    assert_eq!(view["cursor"].as_array().unwrap().len(), 1);
    let watched = members.bulk(&["watch", &id]);
    assert!(watched.status == 1 && watched.out.contains("aborted: "), "{}", watched.out);
    assert!(members.bulk(&["show", &id]).ok().out.contains("wrong text"));

    members.bulk(&["set", &id, "--rate", "100000", "--chunk-max", "500"]).ok();
    let resumed = members.bulk(&["resume", &id]).ok().out;
    assert!(resumed.contains(&format!("continues after {done}")), "{resumed}");
    members.bulk(&["watch", &id]).ok();
    assert_eq!(members.notes(), 1_000);
    let finished = members.bulk(&["resume", &id]);
    assert!(
        finished.status == 1 && finished.err.contains("has finished: all its targets"),
        "{}",
        finished.err
    );
    let set = members.bulk(&["set", &id, "--rate", "1"]);
    assert!(set.status == 1 && set.err.contains("can no longer be changed"), "{}", set.err);
}

fn a_rate_that_is_set_counts_from_the_next_chunk_on(place: Place) {
    let members = Members::new(place, 5_000, &notes("popular", "rate = 10\n"));
    let _work = members.work();
    let id = members.start("popular");
    members.until(&id, "some are done", |view| view["done"].as_u64() > Some(0));
    members.bulk(&["set", &id, "--rate", "11", "--chunk-max", "1"]).ok();
    let set =
        members.bulk(&["set", &id, "--as-defined", "--rate", "1000000", "--duty", "0.9", "--chunk-ms", "20"]);
    let set = set.ok().out;
    assert!(set.contains("as the bulk job defines, at most 1,000,000"), "{set}");
    assert!(set.contains("at most 1,000,000 rows/s, chunks take 90 % of the time"), "{set}");
    let view = members.until_state(&id, "succeeded");
    assert_eq!(view["settings"]["rows_per_s"], 1e6);
    assert_eq!(view["settings"]["chunk_rows_max"], Value::Null);
    assert_eq!(members.notes(), 5_000);
    let shown = members.bulk(&["show", &id]).ok().out;
    assert!(shown.contains("set        at most 1,000,000 rows/s"), "{shown}");
}

/// Starts a run over 200 members, two of which already have a note.
fn with_two_failures(place: Place, lines: &str) -> (Members, crate::bulk::Work, String) {
    let members = Members::new(place, 200, &notes("popular", lines));
    members.place.tamper("insert into note values ('x', 7), ('x', 150)");
    let work = members.work();
    let id = members.start("popular");
    (members, work, id)
}

fn targets_that_failed_are_listed_and_tried_again(place: Place) {
    let (members, _work, id) = with_two_failures(place, "error_budget = 2\n");
    let view = members.until_state(&id, "succeeded");
    assert_eq!((&view["done"], &view["failed"]), (&json!(198), &json!(2)));
    let listed = members.bulk(&["failures", &id]).ok().out;
    assert!(listed.contains("\n7 ") && listed.contains("\n150 "), "{listed}");
    let page = members.bulk(&["failures", &id, "--limit", "1"]).ok();
    let pos = members.bulk(&["failures", &id, "--json"]).json()[0]["pos"].clone();
    assert!(page.err.contains(&format!("add --after {pos}")), "{}", page.err);
    assert!(members.bulk(&["show", &id]).ok().out.contains("200 of 200 (100 %); 2 failed"));

    members.place.tamper("delete from note where run = 'x'");
    let again = members.bulk(&["retry-failures", &id, "--json"]).json();
    let again = again["job"].as_str().unwrap();
    let view = members.until_state(again, "succeeded");
    assert_eq!((&view["done"], &view["retry_of"]), (&json!(2), &json!(id)));
    // Notes belong to the original run.
    assert_eq!(members.number(&format!("select count(*) from note where run = '{id}'")), 200);
    let none = members.bulk(&["retry-failures", &id]);
    assert!(
        none.status == 1 && none.err.contains("has no failures, or all of them were retried"),
        "{}",
        none.err
    );
    let keys = members.bulk(&["failures", &id, "--json"]).json();
    assert!(keys.as_array().unwrap().iter().all(|failure| failure["retried_by"] == json!(again)), "{keys}");
}

fn more_failures_than_the_budget_abort_the_run(place: Place) {
    let (members, _work, id) = with_two_failures(place, "error_budget = 1\n");
    members.until_state(&id, "aborted");
    let shown = members.bulk(&["show", &id]).ok().out;
    assert!(shown.contains("more than") && shown.contains("error_budget = 1"), "{shown}");
    let resumed = members.bulk(&["resume", &id]).ok();
    assert!(resumed.out.contains("continues after "), "{}", resumed.out);
    members.until_state(&id, "succeeded");
}

fn a_closed_window_holds_a_run_and_is_named(place: Place) {
    // An hour that begins in twelve hours.
    let at = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).time();
    let from = at.wrapping_add(jiff::SignedDuration::from_hours(12));
    let to = at.wrapping_add(jiff::SignedDuration::from_hours(13));
    let window = format!("windows = [{{ from = \"{from:.0}\", to = \"{to:.0}\" }}]\n");
    let members = Members::new(place, 10, &notes("popular", &window));
    let _work = members.work();
    let id = members.start("popular");
    let view =
        members.until(&id, "it is held", |view| view["state"] == "pending" && view["throttle"].is_string());
    assert!(view["throttle"].as_str().unwrap().starts_with("window: opens at "), "{view}");
    let listed = members.bulk(&["list"]).ok().out;
    assert!(listed.contains("held by window: opens at"), "{listed}");
    let shown = members.bulk(&["show", &id]).ok().out;
    assert!(shown.contains("held by    window: opens at ") && shown.contains("holds its group"), "{shown}");
    let history: Vec<Value> = view["history"].as_array().unwrap().clone();
    let yielded = history.iter().find(|entry| entry["verb"] == "yield").unwrap();
    assert!(yielded["note"].as_str().unwrap().starts_with("held by window"), "{yielded}");
    assert_eq!(members.notes(), 0);
}

#[test]
fn a_hard_abort_rolls_the_chunk_back_on_postgresql() {
    let apply = "apply = \"insert into note (run, member) select :bulk_id, id from chunk, pg_sleep(600)\"\n";
    let members = Members::new(Place::postgres(), 10, &section("popular", apply));
    let _work = members.work();
    let id = members.start("popular");
    let asleep =
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
    members.until(&id, "its chunk is at work", |_| members.number(asleep) == 1);
    let aborted = members.bulk(&["abort", &id, "--hard"]).ok().out;
    assert!(aborted.contains("the current one is canceled and rolled back"), "{aborted}");
    members.until_state(&id, "aborted");
    assert_eq!((members.notes(), members.number(asleep)), (0, 0));
}

#[test]
fn a_hard_abort_on_sqlite_says_that_chunks_are_short() {
    let members = Members::new(Place::sqlite(), 1_000, &notes("popular", SLOW));
    let _work = members.work();
    let id = members.start("popular");
    members.until(&id, "some are done", |view| view["done"].as_u64() > Some(0));
    let aborted = members.bulk(&["abort", &id, "--hard"]).ok().out;
    assert!(aborted.contains("on SQLite a chunk takes milliseconds and cannot be canceled"), "{aborted}");
    members.until_state(&id, "aborted");
}

fn a_throttle_holds_a_run_as_long_as_it_says_so_and_is_named(place: Place) {
    let throttle = "throttle = { sql = \"select count(*) = 0 from brake\" }\n";
    let members = Members::new(place, 100, &notes("popular", throttle));
    members.place.tamper("create table brake (why text)");
    members.place.tamper("insert into brake values ('month end')");
    let _work = members.work();
    let id = members.start("popular");
    let held = members.until(&id, "it is held", |view| !view["throttle"].is_null());
    assert!(held["throttle"].as_str().unwrap().starts_with("sql probe: "), "{held}");
    assert_eq!((&held["done"], members.notes()), (&json!(0), 0));
    assert!(members.bulk(&["show", &id]).ok().out.contains("sql probe: "));
    members.place.tamper("delete from brake");
    let done = members.until_state(&id, "succeeded");
    assert!(done["held_ms"].as_u64() > Some(0) && done["throttle"].is_null(), "{done}");
    assert_eq!(members.notes(), 100);
}
