//! Tests of operations on jobs and queues: cancel, retry, snooze, abort and similar, pause.

use std::time::Duration;

use crate::support::{Place, failure, on_each_store};
use milepost_core::finish::End;

on_each_store! {
    every_job_named_is_canceled_and_every_failure_reported,
    a_running_job_is_asked_to_stop,
    failed_jobs_and_those_that_wait_to_be_retried_are_retried_now,
    an_aborted_job_is_resumed_by_retry,
    a_failed_job_is_edited_and_retried,
    a_job_is_aborted_and_resumed,
    a_job_that_ended_is_run_once_more,
    a_waiting_job_is_skipped_and_a_failed_one_marked,
    a_blocked_job_is_released_only_when_its_group_is_free,
    a_cancel_of_many_jobs_is_finished_though_nobody_reads_its_words,
    a_snoozed_job_waits_and_says_until_when,
    a_start_in_the_future_is_kept,
    jobs_that_match_a_filter_are_listed_first_and_changed_with_yes,
    a_filter_that_cannot_be_applied_is_refused,
    a_paused_queue_is_why_its_jobs_wait,
    a_queue_that_nobody_knows_is_remarked_upon_and_leaves_nothing_behind,
}

const NO_JOB: &str = "00000000-0000-7000-8000-000000000000";

fn every_job_named_is_canceled_and_every_failure_reported(place: Place) {
    let (a, b) = (place.enqueue(&[]), place.enqueue(&[]));
    let ran = place.run(&["jobs", "cancel", &a, NO_JOB, &b, "--reason", "ordered twice"]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.out, format!("{a}  canceled\n{b}  canceled\n"));
    assert!(ran.err.contains(&format!("there is no job {NO_JOB}")), "{}", ran.err);
    let job = place.job(&a);
    assert_eq!(job["state"], "canceled");
    assert_eq!(job["history"][1]["note"], "ordered twice");
    let again = place.run(&["jobs", "cancel", &a]);
    assert!(again.status == 1 && again.err.contains("canceled cannot cancel"), "{}", again.err);
}

fn a_running_job_is_asked_to_stop(place: Place) {
    let id = place.enqueue(&[]);
    place.work(None);
    let ran = place.run(&["jobs", "cancel", &id, "--grace", "1m"]).ok();
    assert!(ran.out.contains("asked to stop; canceled after 1m at the latest"), "{}", ran.out);
    assert_eq!(place.job(&id)["stop_requested"], true);
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("running, asked to stop"), "{shown}");
}

fn failed_jobs_and_those_that_wait_to_be_retried_are_retried_now(place: Place) {
    let failed = place.enqueue(&[]);
    place.work(Some(End::Fail { failure: failure("http_500") }));
    let shown = place.run(&["jobs", "show", &failed]).ok().out;
    assert!(shown.contains("http_500: the server said no"), "{shown}");
    let hour = Duration::from_secs(3600);
    let waiting = place.enqueue(&[]);
    place.work(Some(End::Retry { delay: hour, failure: failure("timeout") }));
    let ended = place.enqueue(&[]);
    place.work(Some(End::Succeed { result: Some("{\"sent\":true}".to_owned()) }));
    let ran = place.run(&["jobs", "retry", &failed, &waiting, &ended, "--reason", "mended"]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.out, format!("{failed}  pending\n{waiting}  pending\n"));
    assert!(
        ran.err.contains("succeeded cannot retry; only jobs that are retry_wait, failed or aborted can"),
        "{}",
        ran.err
    );
    let list = place.run(&["jobs", "list", "--state", "pending", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(place.job(&ended)["result"]["sent"], true);
}

fn an_aborted_job_is_resumed_by_retry(place: Place) {
    let id = place.enqueue(&[]);
    place.run(&["jobs", "abort", &id]).ok();
    assert_eq!(place.job(&id)["state"], "aborted");
    place.run(&["jobs", "retry", &id]).ok();
    let job = place.job(&id);
    assert_eq!((&job["state"], &job["history"][2]["verb"]), (&"pending".into(), &"resume".into()));
}

fn a_failed_job_is_edited_and_retried(place: Place) {
    let failed = place.enqueue(&["--payload", "{\"to\": \"ada\"}"]);
    place.work(Some(End::Fail { failure: failure("http_500") }));
    let edit = |args: &[&str]| place.run(&[&["jobs", "edit", &failed], args].concat());
    let ran = edit(&["--payload", "{\"to\": \"eve\"}", "--priority", "1", "--reason", "wrong address"]).ok();
    assert_eq!(ran.out, format!("{failed}  edited; failed\n"));
    let job = place.job(&failed);
    assert_eq!(
        (&job["payload"]["to"], &job["priority"], &job["state"]),
        (&"eve".into(), &1.into(), &"failed".into())
    );
    let shown = place.run(&["jobs", "show", &failed]).ok().out;
    assert!(shown.contains("edit") && shown.contains("wrong address"), "{shown}");
    assert!(edit(&[]).err.contains("the edit changes nothing"));
    assert!(edit(&["--payload", "{"]).err.contains("the payload is not JSON"));
    assert!(edit(&["--start-at", "in 10m"]).err.contains("a job that is failed has no start"));
    place.run(&["jobs", "retry", &failed]).ok();
    place.work(Some(End::Succeed { result: None }));
    let refused = edit(&["--max-attempts", "3"]);
    assert!(
        refused.status == 1
            && refused.err.contains("a job that is succeeded cannot edit; only jobs that are"),
        "{}",
        refused.err
    );
}

fn a_snoozed_job_waits_and_says_until_when(place: Place) {
    let id = place.enqueue(&[]);
    let ran = place.run(&["jobs", "snooze", &id, "--for", "2h"]).ok();
    assert_eq!(ran.out, format!("{id}  snoozed for 2h\n"));
    assert_eq!(place.job(&id)["waiting_for"]["reason"], "time");
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("it is due in "), "{shown}");
    assert_eq!(place.run(&["jobs", "snooze", &id, "--for", "0s"]).status, 2);
}

fn a_start_in_the_future_is_kept(place: Place) {
    for at in ["in 10m", "2100-01-01T00:00:00Z"] {
        let id = place.enqueue(&["--at", at]);
        assert_eq!(place.job(&id)["waiting_for"]["reason"], "time", "{at}");
    }
}

fn jobs_that_match_a_filter_are_listed_first_and_changed_with_yes(place: Place) {
    let failed = place.enqueue(&["--payload", "{\"to\": \"ada\"}"]);
    place.work(Some(End::Fail { failure: failure("http_500") }));
    let canceled = place.enqueue(&["--payload", "{\"to\": \"ada\"}"]);
    place.run(&["jobs", "cancel", &canceled]).ok();
    let other = place.enqueue(&[]);
    let retry = |filter: &[&str]| place.run(&[&["jobs", "retry"], filter].concat());
    let preview = retry(&["--state", "failed", "--kind", "mail"]).ok();
    assert_eq!(preview.out, format!("{failed}  failed\n"));
    assert!(preview.err.contains("1 job matches; nothing was changed: give --yes"), "{}", preview.err);
    assert_eq!(place.job(&failed)["state"], "failed");
    for filter in
        [["--error", "http_500"], ["--payload", "to=ada"], ["--failed-from", "2020-01-01T00:00:00Z"]]
    {
        assert_eq!(retry(&filter).ok().out, format!("{failed}  failed\n"), "{filter:?}");
    }
    for filter in [["--queue", "none"], ["--created-before", "2020-01-01T00:00:00Z"]] {
        let none = retry(&filter);
        assert!(none.status == 1 && none.err.contains("no job matches"), "{filter:?}: {}", none.err);
    }
    let ran = retry(&["--payload", "to=ada", "--yes", "--reason", "the API is back"]).ok();
    assert_eq!(ran.out, format!("{failed}  pending\n"));
    assert!(ran.err.contains("not changed: 1 canceled"), "{}", ran.err);
    let history = place.job(&failed)["history"].clone();
    assert_eq!(history.as_array().unwrap().last().unwrap()["note"], "the API is back");
    let snoozed = place.run(&["jobs", "snooze", "--kind", "mail", "--for", "1h", "--yes"]).ok();
    assert_eq!(snoozed.out, format!("{failed}  snoozed for 1h\n{other}  snoozed for 1h\n"));
    let many = place.enqueue_many(12);
    let preview = place.run(&["jobs", "skip", "--state", "pending"]).ok();
    assert!(
        preview.out.ends_with("and 4 more\n") && preview.err.contains("14 jobs match"),
        "{}",
        preview.out
    );
    assert_eq!(many.len(), 15);
}

fn a_filter_that_cannot_be_applied_is_refused(place: Place) {
    let id = place.enqueue(&[]);
    for line in [
        &["jobs", "cancel"][..],
        &["jobs", "cancel", &id, "--state", "pending"],
        &["jobs", "cancel", &id, "--yes"],
        &["jobs", "cancel", "--payload", "x"],
        &["jobs", "snooze", "--state", "pending"],
    ] {
        let ran = place.run(line);
        assert_eq!(ran.status, 2, "{line:?}: {}", ran.err);
    }
    assert_eq!(place.job(&id)["state"], "pending");
}

fn a_paused_queue_is_why_its_jobs_wait(place: Place) {
    let id = place.enqueue(&[]);
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("no active worker serves kind mail in queue default"), "{shown}");
    assert!(place.run(&["queues", "pause", "default"]).ok().out.contains("is paused"));
    assert!(place.run(&["queues", "pause", "default"]).ok().out.contains("paused already"));
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("queue default is paused"), "{shown}");
    assert!(place.run(&["queues", "list"]).ok().out.contains("paused"));
    assert!(place.run(&["queues", "resume", "default"]).ok().out.contains("is resumed"));
}

fn a_job_is_aborted_and_resumed(place: Place) {
    let (waiting, running) = (place.enqueue(&["--queue", "slow"]), place.enqueue(&[]));
    place.work(None);
    let ran = place.run(&["jobs", "abort", &waiting, &running, "--grace", "1m", "--reason", "too slow"]).ok();
    let told = format!("{waiting}  aborted\n{running}  asked to stop; aborted after 1m at the latest\n");
    assert_eq!(ran.out, told);
    assert_eq!(place.job(&waiting)["history"][1]["note"], "too slow");
    let ran = place.run(&["jobs", "abort", &running, "--grace", "0s"]).ok();
    assert_eq!(ran.out, format!("{running}  aborted\n"));
    let ran = place.run(&["jobs", "resume", &waiting, &running, "--reason", "go on"]).ok();
    assert_eq!(ran.out, format!("{waiting}  pending\n{running}  pending\n"));
    assert_eq!(place.job(&waiting)["history"][2]["note"], "go on");
    let again = place.run(&["jobs", "resume", &waiting]);
    assert!(again.status == 1 && again.err.contains("pending cannot resume"), "{}", again.err);
}

fn a_job_that_ended_is_run_once_more(place: Place) {
    let id = place.enqueue(&[]);
    place.work(Some(End::Succeed { result: None }));
    assert_eq!(place.run(&["jobs", "rerun", &id, "--reason", "again"]).ok().out, format!("{id}  pending\n"));
    let job = place.job(&id);
    assert_eq!((&job["state"], &job["history"][3]["verb"]), (&"pending".into(), &"rerun".into()));
    let again = place.run(&["jobs", "rerun", &id]);
    assert!(again.status == 1 && again.err.contains("pending cannot rerun"), "{}", again.err);
}

fn a_waiting_job_is_skipped_and_a_failed_one_marked(place: Place) {
    let failed = place.enqueue(&[]);
    place.work(Some(End::Fail { failure: failure("http_500") }));
    let waiting = place.enqueue(&[]);
    let ran = place.run(&["jobs", "skip", &waiting, &failed, "--reason", "not this month"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, format!("{waiting}  skipped\n").as_str()));
    assert!(ran.err.contains("failed cannot skip"), "{}", ran.err);
    assert_eq!(place.run(&["jobs", "mark", &failed]).ok().out, format!("{failed}  succeeded\n"));
    assert_eq!(place.job(&waiting)["history"][1]["note"], "not this month");
    let (blank, padded) = (place.enqueue(&[]), place.enqueue(&[]));
    place.run(&["jobs", "skip", &blank, "--reason", "  "]).ok();
    assert_eq!(place.job(&blank)["history"][1]["note"], serde_json::Value::Null);
    place.run(&["jobs", "skip", &padded, "--reason", " next month\n"]).ok();
    assert_eq!(place.job(&padded)["history"][1]["note"], "next month");
}

fn a_blocked_job_is_released_only_when_its_group_is_free(place: Place) {
    let (holder, blocked) = (place.enqueue(&["--group", "g"]), place.enqueue(&["--group", "g"]));
    assert_eq!(place.job(&holder)["state"], "pending");
    let ran = place.run(&["jobs", "release", &blocked, "--reason", "now"]);
    assert!(ran.status == 1 && ran.err.contains("blocked cannot release"), "{}", ran.err);
    assert_eq!(place.job(&blocked)["state"], "blocked");
}

fn a_cancel_of_many_jobs_is_finished_though_nobody_reads_its_words(place: Place) {
    let ids = place.enqueue_many(40);
    let args: Vec<&str> = ["jobs", "cancel"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    assert_eq!(place.run_unheard(&args).status, 0);
    let canceled = place.run(&["jobs", "list", "--state", "canceled", "--json"]).json();
    assert_eq!(canceled.as_array().unwrap().len(), 40);
    let ran = place.run_unheard(&["jobs", "retry", &ids[0]]);
    assert!(
        ran.status == 1 && ran.err.contains("is canceled"),
        "failures are reported, even if the output cannot be written"
    );
    assert_eq!(place.run_unheard(&["queues", "pause", "mail"]).status, 0);
    assert_eq!(place.run_unheard(&["enqueue", "mail"]).status, 0);
}

fn a_queue_that_nobody_knows_is_remarked_upon_and_leaves_nothing_behind(place: Place) {
    place.enqueue(&["--queue", "mail"]);
    let ran = place.run(&["queues", "pause", "mail"]).ok();
    assert_eq!(ran.err, "");
    place.run(&["queues", "resume", "mail"]).ok();
    let ran = place.run(&["queues", "resume", "mial"]).ok();
    assert!(
        ran.out.contains("was not paused") && ran.err.contains("known are mail"),
        "{}{}",
        ran.out,
        ran.err
    );
    let queues = || place.run(&["queues", "list", "--json"]).json().as_array().unwrap().len();
    assert_eq!(queues(), 1);
    let ran = place.run(&["queues", "pause", "mial"]).ok();
    assert!(ran.err.contains("no job waits in queue mial and no worker serves it"), "{}", ran.err);
    assert_eq!(queues(), 2);
    assert!(place.run(&["queues", "resume", "mial"]).ok().out.contains("is resumed"));
    assert_eq!(queues(), 1);
    for name in ["", "a\nb"] {
        let ran = place.run(&["queues", "pause", name]);
        assert!(ran.status == 1 && ran.err.contains("is invalid"), "{}", ran.err);
    }
}
