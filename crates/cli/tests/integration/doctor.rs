//! Tests of examination and repair on the command line.

use crate::support::http::ask;
use crate::support::process::Process;
use crate::support::{Place, on_each_store, until};
use milepost_core::doctor::{Check, Cost, Stores};

on_each_store! {
    a_sound_store_has_nothing_to_report,
    damage_is_told_with_its_meaning_and_what_to_do,
    a_dry_run_says_what_a_repair_would_do_and_does_nothing,
    a_repair_mends_what_is_safe_and_is_noted_with_who_did_it,
    what_a_repair_cannot_mend_is_still_an_error,
    warnings_are_no_failure,
    quick_questions_leave_out_the_others,
    only_the_named_checks_are_asked,
    a_question_over_its_time_leaves_the_answer_open,
    the_exit_status_is_the_same_if_nobody_reads_the_report,
}

/// Enqueues a job and deletes its row in `live` directly; returns its id.
fn lose_a_job(place: &Place) -> String {
    let id = place.enqueue(&[]);
    place.tamper("delete from milepost.live");
    id
}

fn a_sound_store_has_nothing_to_report(place: Place) {
    place.enqueue(&["--key", "k"]);
    let ran = place.run(&["doctor"]).ok();
    assert!(ran.out.starts_with("nothing found (") && ran.err.is_empty(), "{}{}", ran.out, ran.err);
    let json = place.run(&["doctor", "--json"]).json();
    assert_eq!((&json["findings"], &json["unanswered"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert!(json["answered"].as_u64().unwrap() > 25, "{json}");
}

fn damage_is_told_with_its_meaning_and_what_to_do(place: Place) {
    let id = lose_a_job(&place);
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    let check = Check::JobWithoutPlace;
    for words in
        ["Errors", check.as_str(), &id, "pending", check.means(), check.remedy(), check.repair().unwrap()]
    {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
    let ran = place.run(&["doctor", "--json"]);
    assert_eq!(ran.status, 1);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let finding = &json["findings"][0];
    assert_eq!((&finding["check"], &finding["count"]), (&"job_without_place".into(), &1.into()));
    assert_eq!(finding["examples"][0]["what"], id.as_str());
}

fn a_dry_run_says_what_a_repair_would_do_and_does_nothing(place: Place) {
    lose_a_job(&place);
    let ran = place.run(&["doctor", "--repair", "--dry-run"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("--repair would do: Restores its row"), "{}", ran.out);
    assert_eq!(place.run(&["doctor"]).status, 1, "nothing was repaired");
    assert_eq!(place.run(&["doctor", "--dry-run"]).status, 2);
}

fn a_repair_mends_what_is_safe_and_is_noted_with_who_did_it(place: Place) {
    let id = lose_a_job(&place);
    let ran = place.run(&["doctor", "--repair"]).ok();
    assert!(ran.out.contains("repaired job_without_place: 1\nnothing found"), "{}", ran.out);
    assert_eq!(place.job(&id)["state"], "pending");
    let who = place.tamper("select who from milepost.audit where what = 'doctor.repair'");
    let (user, host) = who.split_once('@').unwrap();
    assert!(!user.is_empty() && !host.is_empty(), "{who}");
    assert!(
        place.tamper("select detail from milepost.audit where what = 'doctor.repair'").contains(&id),
        "the note names the job"
    );
}

fn what_a_repair_cannot_mend_is_still_an_error(place: Place) {
    lose_a_job(&place);
    place.tamper("delete from milepost.history");
    let ran = place.run(&["doctor", "--repair"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("job_without_place") && !ran.out.contains("repaired"), "{}", ran.out);
}

fn warnings_are_no_failure(place: Place) {
    place.enqueue(&[]);
    for table in ["live", "job"] {
        place.tamper(&format!("delete from milepost.{table}"));
    }
    let ran = place.run(&["doctor"]).ok();
    assert!(ran.out.contains("Warnings") && ran.out.contains("history_without_job"), "{}", ran.out);
    assert!(ran.out.contains("no errors; warnings: 1 ("), "{}", ran.out);
}

fn quick_questions_leave_out_the_others(place: Place) {
    lose_a_job(&place);
    let ran = place.run(&["doctor", "--quick"]).ok();
    let here = if place.store.starts_with("postgres") { Stores::Postgres } else { Stores::Sqlite };
    let is_left_out =
        |check: &&Check| check.cost() == Cost::Full && [Stores::All, here].contains(&check.stores());
    let left_out = Check::ALL.iter().filter(is_left_out).count();
    assert!(ran.out.contains(&format!("skipped by --quick: {left_out}")), "{}", ran.out);
}

fn only_the_named_checks_are_asked(place: Place) {
    lose_a_job(&place);
    let ran = place.run(&["doctor", "--check", "two_ends", "--check", "token_off"]).ok();
    assert!(ran.out.contains("(checks completed: 2)"), "{}", ran.out);
    assert_eq!(place.run(&["doctor", "--check", "job_without_place"]).status, 1);
    assert_eq!(place.run(&["doctor", "--check", "all_is_well"]).status, 2);
    let other = if place.store.starts_with("postgres") { "file_damaged" } else { "dead_rows" };
    let ran = place.run(&["doctor", "--check", other]);
    assert!(ran.status == 2 && ran.err.contains("is a check for"), "{} {}", ran.status, ran.err);
}

fn a_question_over_its_time_leaves_the_answer_open(place: Place) {
    place.write("many.jsonl", "1\n".repeat(20_000));
    place.run(&["enqueue", "mail", "--from", "many.jsonl"]).ok();
    // On a busy machine, the timeout may be detected too late.
    let ran = until("the check is abandoned", || {
        let ran = place.run(&["doctor", "--check", "history_gap", "--time-limit", "1ms"]);
        if ran.status == 3 { Ok(ran) } else { Err(ran.out) }
    });
    assert!(ran.err.contains("history_gap could not be completed"), "{}", ran.err);
}

#[test]
fn a_store_that_cannot_be_opened_leaves_the_answer_open() {
    let ran = Place::without_store().run(&["doctor"]);
    assert_eq!(ran.status, 3);
    assert!(ran.err.contains("there is no store"), "{}", ran.err);
}

#[test]
fn all_checks_are_listed() {
    let place = Place::without_store();
    let table = place.run(&["doctor", "list"]).ok().out;
    let json = place.run(&["doctor", "list", "--json"]).json();
    assert_eq!(json.as_array().unwrap().len(), Check::ALL.len());
    assert!(Check::ALL.iter().all(|check| table.contains(check.as_str())), "{table}");
}

#[test]
fn a_promotion_of_the_database_server_is_told_here_and_on_the_console() {
    let place = Place::postgres();
    place.run(&["migrate"]).ok();
    place.sql("insert into milepost.timeline (server, id) select server, 1000 from milepost.timeline");
    let told = place.run(&["doctor"]);
    assert!(told.out.contains("promoted") && told.out.contains("timeline 1000"), "{}{}", told.out, told.err);
    let (_server, address) = Process::serve(&place, &[]);
    let page = ask(&address, "GET", "/", "");
    assert!(page.contains("The database server was promoted or restored"), "{page}");
    assert!(!page.contains("No problems"), "{page}");
}

fn the_exit_status_is_the_same_if_nobody_reads_the_report(place: Place) {
    place.enqueue(&[]);
    for args in [["doctor"].as_slice(), &["doctor", "--json"]] {
        let ran = place.run_unheard(args);
        assert!(ran.status == 0 && ran.err.is_empty(), "{}", ran.err);
    }
    lose_a_job(&place);
    assert_eq!(place.run_unheard(&["doctor"]).status, 1);
}
