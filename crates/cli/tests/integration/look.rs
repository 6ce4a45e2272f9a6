//! Tests of read-only commands: listings, JSON, help, and stores that cannot be opened.

use crate::support;

use crate::support::process::Process;
use crate::support::{Place, on_each_store};
use milepost_core::finish::End;
use milepost_core::search::SCAN_MAX;

on_each_store! {
    a_page_goes_on_where_the_one_before_ended,
    listings_are_filtered,
    a_watched_job_is_shown_until_it_has_ended,
    a_watched_list_shows_new_jobs,
    a_rare_kind_is_found_behind_many_others,
    workers_are_listed_with_what_they_hold,
    every_listing_of_an_empty_store_is_an_empty_array,
    a_reader_that_leaves_early_is_no_error,
    a_list_that_was_cut_says_so_whatever_its_form,
    a_payload_nested_deeply_is_shown_in_few_words_and_a_deeper_one_refused,
}

fn a_page_goes_on_where_the_one_before_ended(place: Place) {
    let mut ids: Vec<String> = (0..5).map(|_| place.enqueue(&[])).collect();
    ids.reverse();
    assert_eq!(place.ids(), ids);
    let page = place.run(&["jobs", "list", "--limit", "2"]).ok();
    assert!(page.err.contains(&format!("--before {}", ids[1])), "{}", page.err);
    let next = place.run(&["jobs", "list", "--limit", "2", "--before", &ids[1], "--json"]).json();
    assert_eq!((&next[0]["id"], &next[1]["id"]), (&ids[2].as_str().into(), &ids[3].as_str().into()));
}

fn listings_are_filtered(place: Place) {
    place.run(&["enqueue", "mail", "--queue", "slow", "--key", "k"]).ok();
    place.run(&["enqueue", "report"]).ok();
    let count = |filter: &[&str]| {
        let list = place.run(&[&["jobs", "list", "--json"], filter].concat()).json();
        list.as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["--kind", "mail"]), 1);
    assert_eq!(count(&["--queue", "slow"]), 1);
    assert_eq!(count(&["--key", "k"]), 1);
    assert_eq!(count(&["--state", "failed"]), 0);
    assert_eq!(place.run(&["jobs", "list", "--state", "lost"]).status, 2);
}

fn a_watched_job_is_shown_until_it_has_ended(place: Place) {
    let id = place.enqueue(&[]);
    let mut watch = Process::spawn_printing(&mut place.command(&["jobs", "show", &id, "--watch"]));
    watch.hear("pending");
    place.work(Some(End::Succeed { result: None }));
    watch.hear("succeeded");
    assert_eq!(watch.end().0, Some(0));
}

fn a_watched_list_shows_new_jobs(place: Place) {
    let first = place.enqueue(&[]);
    let mut watch = Process::spawn_printing(&mut place.command(&["jobs", "list", "--watch"]));
    watch.hear(&first);
    let second = place.enqueue(&[]);
    watch.hear(&second);
    watch.hear(&second);
}

fn a_rare_kind_is_found_behind_many_others(place: Place) {
    let rare: Vec<String> = (0..2).map(|_| place.enqueue(&["--queue", "rare"])).collect();
    place.enqueue_many(SCAN_MAX as usize + 10);
    let list = place.run(&["jobs", "list", "--queue", "rare", "--json"]).json();
    assert_eq!((&list[0]["id"], &list[1]["id"]), (&rare[1].as_str().into(), &rare[0].as_str().into()));
    let first = place.run(&["jobs", "list", "--queue", "rare", "--limit", "1"]).ok();
    assert!(first.err.contains(&format!("--before {}", rare[1])), "{}", first.err);
}

fn workers_are_listed_with_what_they_hold(place: Place) {
    place.enqueue(&[]);
    place.work(None);
    let workers = place.run(&["workers", "list", "--json"]).json();
    assert_eq!((&workers[0]["name"], &workers[0]["running"]), (&"tester".into(), &1.into()));
    let table = place.run(&["workers", "list"]).ok().out;
    assert!(table.contains("tester") && table.contains("active"), "{table}");
    let queues = place.run(&["queues", "list", "--json"]).json();
    assert_eq!(queues[0]["counts"]["running"], 1);
    place.expire_leases("tester");
    let table = place.run(&["workers", "list"]).ok().out;
    assert!(table.contains("no heartbeat") && !table.contains("active"), "{table}");
}

fn every_listing_of_an_empty_store_is_an_empty_array(place: Place) {
    let place = place.emptied();
    let plan = place.run(&["migrate", "--plan", "--json"]).json();
    assert_eq!((&plan["found"], &plan["steps"][0]["name"]), (&0.into(), &"baseline".into()));
    assert!(place.run(&["migrate", "--plan"]).ok().out.contains("1  baseline: creates the tables"));
    let migrated = place.run(&["migrate"]).ok().out;
    assert!(migrated.contains("from schema version 0 to "), "{migrated}");
    assert!(place.run(&["migrate", "--plan"]).ok().out.contains("nothing to do"));
    assert!(place.run(&["migrate"]).ok().out.contains("already"));
    for listing in [["jobs", "list"], ["queues", "list"], ["workers", "list"], ["limits", "list"]] {
        assert_eq!(place.run(&[&listing[..], &["--json"]].concat()).ok().out, "[]\n");
        let ran = place.run(&listing).ok();
        assert!(ran.out.is_empty() && !ran.err.is_empty());
    }
}

#[test]
fn a_store_that_was_never_made_is_not_made_by_looking() {
    let place = Place::without_store();
    let ran = place.run(&["jobs", "list"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("`milepost migrate`"), "{}", ran.err);
    assert!(!place.path("jobs.db").exists());
}

#[test]
fn an_unknown_store_scheme_names_the_known_ones() {
    let ran = Place::without_store().run(&["--store", "mysql://ada:s3cret@db/app", "jobs", "list"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("sqlite:PATH") && ran.err.contains("postgres://"), "{}", ran.err);
    assert!(!ran.err.contains("s3cret"), "{}", ran.err);
}

#[test]
fn an_unusable_path_is_named_with_the_cause() {
    let ran = Place::without_store().run(&["--store", "sqlite:/no/such/folder/jobs.db", "enqueue", "mail"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("/no/such/folder/jobs.db") && ran.err.contains("because: "), "{}", ran.err);
}

#[test]
fn a_password_is_in_no_message() {
    let place = Place::without_store();
    for store in
        ["postgres://ada:s3cret@127.0.0.1:1/app?connect_timeout=1", "postgres://ada:s3cret@127.0.0.1:x/app"]
    {
        let mut command = place.command(&["jobs", "list"]);
        let ran = support::Ran::from(
            command.env("MILEPOST_STORE", store).env("MILEPOST_LOG", "debug").output().unwrap(),
        );
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(ran.err.contains("***@127.0.0.1") && !ran.err.contains("s3cret"), "{}", ran.err);
    }
    let mut help = place.command(&["--help"]);
    let ran =
        support::Ran::from(help.env("MILEPOST_STORE", "postgres://ada:s3cret@db/app").output().unwrap());
    assert!(!ran.out.contains("s3cret"));
}

#[test]
fn each_command_helps_with_examples() {
    let place = Place::without_store();
    for command in [
        "",
        "migrate",
        "enqueue",
        "jobs list",
        "jobs show",
        "jobs cancel",
        "jobs retry",
        "jobs snooze",
        "jobs abort",
        "jobs resume",
        "jobs rerun",
        "jobs skip",
        "jobs mark",
        "jobs release",
        "queues list",
        "queues pause",
        "queues resume",
        "workers list",
        "work",
        "doctor",
        "doctor list",
        "config check",
        "config init",
        "config schema",
        "limits list",
        "limits set",
        "limits remove",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = place.run(&args).ok().out;
        assert!(help.contains("Usage: milepost") && help.contains("Examples:"), "{command}: {help}");
    }
    assert_eq!(place.run(&["jobs"]).status, 2);
    assert_eq!(place.run(&["jobs", "show", "42"]).status, 2);
}

fn a_reader_that_leaves_early_is_no_error(place: Place) {
    place.enqueue_many(3000);
    let listings: [&[&str]; 3] =
        [&["jobs", "list", "--limit", "3000", "--json"], &["doctor", "list"], &["config", "schema"]];
    for listing in listings {
        let ran = place.run_unheard(listing);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{listing:?}");
    }
}

fn a_list_that_was_cut_says_so_whatever_its_form(place: Place) {
    let ids = place.enqueue_many(51);
    let said = |args: &[&str]| place.run(&[&["jobs", "list"], args].concat()).ok().err;
    for args in [&[][..], &["--json"]] {
        let err = said(args);
        let told = format!("only the newest 50 are listed; to list older ones, add --before {}", ids[49]);
        assert!(err.contains(&told), "{args:?}: {err}");
        assert_eq!(said(&[args, &["--limit", "51"]].concat()), "", "{args:?}");
    }
    for recipe in ["cancel", "retry", "abort", "resume", "rerun"] {
        let help = place.run(&["jobs", recipe, "--help"]).ok().out;
        assert!(help.contains("--kind mail --reason 'TEXT' --yes"), "{help}");
    }
}

fn a_payload_nested_deeply_is_shown_in_few_words_and_a_deeper_one_refused(place: Place) {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let id = place.enqueue(&["--payload", &nested(120)]);
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.len() < 4000 && shown.contains("[[[[[1]]]]]"), "{shown}");
    assert_eq!(place.job(&id)["id"], id.as_str(), "readers can read it");
    let ran = place.run(&["enqueue", "mail", "--payload", &nested(121)]);
    assert!(ran.status == 1 && ran.err.contains("nested 121 levels deep; the limit is 120"), "{}", ran.err);
}
