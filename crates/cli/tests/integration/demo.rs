//! Tests of the demo: its output is correct, and it leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use milepost_testkit::wait;

use crate::support::http::ask;
use crate::support::process::Process;
use crate::support::{Place, Ran, on_each_store};

on_each_store! {
    the_demo_kills_a_worker_and_every_check_passes,
    demos_on_a_store_in_use_count_only_themselves_and_leave_other_jobs_alone,
}

fn the_demo_kills_a_worker_and_every_check_passes(place: Place) {
    let ran = demo(&place, "3000");
    assert!(ran.err.contains("half way: killed worker 1 (process "), "{}", ran.err);
    assert!(ran.err.contains("worker 2 took its jobs back"), "{}", ran.err);
    let failed = place.run(&["jobs", "list", "--state", "failed", "--json"]).json();
    assert_eq!(failed.as_array().unwrap().len(), 12);
    let dead_letter = place.run(&["jobs", "show", failed[0]["id"].as_str().unwrap()]).ok();
    assert!(dead_letter.out.contains("has no address"), "{}", dead_letter.out);
    let workers = place.run(&["workers", "list", "--json"]).json();
    let died = workers.as_array().unwrap().iter().filter(|worker| worker["died"] == true);
    let died: Vec<&str> = died.map(|worker| worker["name"].as_str().unwrap()).collect();
    // On a busy machine, other workers may be declared dead as well.
    let killed: Vec<&str> = ran.err.split("killed ").skip(1).map(|rest| &rest[.."worker 1".len()]).collect();
    assert!(killed.len() == 3 && killed.iter().all(|name| died.contains(name)), "{killed:?}: {workers}");
    let batches = place.run(&["batch", "list", "--dag", "demo.settlement", "--json"]).json();
    assert_eq!((batches.as_array().unwrap().len(), &batches[0]["state"]), (1, &"done".into()), "{batches}");
    for told in [
        "at the same moment",
        "in the middle of a chunk of demo.",
        "continued from the cursor",
        "aborted demo.",
        "a third done: killed worker 5 (process ",
        "the others took its tasks back",
        "the report is written; most places are in ",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
}

fn demos_on_a_store_in_use_count_only_themselves_and_leave_other_jobs_alone(place: Place) {
    let mail = place.enqueue(&["--key", "1"]);
    demo(&place, "1000");
    demo(&place, "1000");
    assert_eq!(place.job(&mail)["state"], "pending");
}

/// Runs a demo that must succeed.
fn demo(place: &Place, places: &str) -> Ran {
    let ran = place.run(&["demo", "--places", places, "--no-serve"]).ok();
    assert_eq!(ran.out.matches("Every check passed.\n").count(), 3, "{}", ran.out);
    assert!(ran.out.matches('✓').count() >= 30 && !ran.out.contains('✗'), "{}", ran.out);
    ran
}

#[test]
fn without_a_store_the_demo_works_in_a_temporary_file_and_removes_it() {
    let place = Place::without_store();
    let ran = Ran::from(embedded(&place, "1000").output().unwrap()).ok();
    assert!(ran.out.ends_with("Every check passed.\n"), "{}", ran.out);
    assert!(ran.err.contains(&place.path("milepost-demo-").display().to_string()), "{}", ran.err);
    assert!(left_in(&place).is_empty(), "{:?}", left_in(&place));
}

#[test]
fn where_programs_cannot_run_the_demo_says_so_and_shows_the_rest() {
    let place = Place::sqlite();
    let mut command = place.command(&["demo", "--places", "1000", "--no-serve"]);
    let ran = Ran::from(command.env("PATH", place.path("")).output().unwrap()).ok();
    assert_eq!(ran.out.matches("Every check passed.\n").count(), 2, "{}", ran.out);
    assert!(ran.err.contains("the batch is skipped: "), "{}", ran.err);
}

#[test]
fn a_demo_that_is_terminated_ends_its_workers_and_removes_its_store() {
    let place = Place::without_store();
    let (mut demo, workers) = demo_with_two_workers(&place);
    let term = Command::new("kill").arg(demo.id().to_string()).status().unwrap();
    assert!(term.success());
    assert_eq!(demo.wait().unwrap().code(), Some(1));
    wait_until_gone(&workers);
    assert!(left_in(&place).is_empty(), "{:?}", left_in(&place));
}

#[test]
fn workers_do_not_outlive_a_demo_that_is_killed() {
    let place = Place::without_store();
    let (mut demo, workers) = demo_with_two_workers(&place);
    demo.kill().unwrap();
    demo.wait().unwrap();
    wait_until_gone(&workers);
}

#[test]
fn a_demo_whose_checks_fail_says_so_by_its_status_though_nobody_reads_its_table() {
    let place = Place::sqlite();
    assert_eq!(place.run_unheard(&["demo", "--places", "1000", "--no-serve"]).status, 0);
    let db = rusqlite::Connection::open(place.path("jobs.db")).unwrap();
    db.execute_batch(
        "CREATE TRIGGER lose AFTER INSERT ON milepost_demo_notification WHEN new.place_id = 1
         BEGIN DELETE FROM milepost_demo_notification WHERE id = new.id; END",
    )
    .unwrap();
    assert_eq!(place.run_unheard(&["demo", "--places", "1000", "--no-serve"]).status, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_demo_ends_by_serving_the_console_of_what_it_did() {
    let place = Place::without_store();
    let mut command = place.command(&["demo", "--places", "1000"]);
    let mut demo = Process::spawn(command.env_remove("MILEPOST_STORE").env("TMPDIR", place.path("")));
    let line = demo.hear("console: http://");
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let page = ask(&address, "GET", "/batches", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("demo.settlement"), "{page}");
    let jobs = |path: &str| -> serde_json::Value {
        let answer = ask(&address, "GET", path, "");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let failed = jobs("/v1/jobs?state=failed&kind=demo.notify&limit=1")["items"][0].clone();
    let path = format!("/v1/jobs/{}", failed["id"].as_str().unwrap());
    let retried = ask(&address, "POST", &format!("{path}/operate"), r#"{"operation": "retry"}"#);
    assert!(retried.starts_with("HTTP/1.1 2"), "{retried}");
    let began = Instant::now();
    while jobs(&format!("{path}/attempts")).as_array().unwrap().len() < 2 {
        assert!(began.elapsed() < wait::LIMIT, "no worker ran {failed} again");
        std::thread::sleep(Duration::from_millis(50));
    }
    demo.leave();
    assert!(left_in(&place).is_empty(), "{:?}", left_in(&place));
}

#[test]
fn a_demo_of_too_few_places_is_wrong_usage() {
    let ran = Place::without_store().run(&["demo", "--places", "999"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("1000"), "{}", ran.err);
}

/// Returns a demo command without `--store`; its temporary files are in the place's folder.
fn embedded(place: &Place, places: &str) -> Command {
    let mut command = place.command(&["demo", "--places", places, "--no-serve"]);
    command.env_remove("MILEPOST_STORE").env("TMPDIR", place.path(""));
    command
}

/// Starts a demo and returns it with the process ids of its workers once they run.
fn demo_with_two_workers(place: &Place) -> (Child, Vec<String>) {
    let mut demo = embedded(place, "20000").spawn().unwrap();
    let lines = BufReader::new(demo.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("enqueued ")));
    let workers = two_children(demo.id());
    (demo, workers)
}

fn two_children(process: u32) -> Vec<String> {
    let children = format!("/proc/{process}/task/{process}/children");
    let deadline = Instant::now() + wait::LIMIT;
    loop {
        let workers = std::fs::read_to_string(&children).unwrap();
        let workers: Vec<String> = workers.split_whitespace().map(str::to_owned).collect();
        if workers.len() == 2 {
            return workers;
        }
        assert!(Instant::now() < deadline, "the demo has the children {workers:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wait_until_gone(processes: &[String]) {
    let deadline = Instant::now() + wait::LIMIT;
    while processes.iter().any(|process| lives(process)) {
        assert!(Instant::now() < deadline, "a worker process outlived its demo");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether the process runs. An orphaned process that was not reaped counts as dead.
fn lives(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn left_in(place: &Place) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().path()).collect()
}
