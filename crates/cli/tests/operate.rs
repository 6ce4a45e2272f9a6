//! Intervening: cancel, retry, snooze, pause.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use milepost_core::finish::End;
use support::{Place, failure, on_each_store};

on_each_store! {
    every_job_named_is_canceled_and_every_failure_reported,
    a_running_job_is_asked_to_stop,
    failed_jobs_and_those_that_wait_to_be_retried_are_retried_now,
    an_aborted_job_is_resumed_by_retry,
    a_snoozed_job_waits_and_says_until_when,
    a_start_in_the_future_is_kept,
    a_paused_queue_is_why_its_jobs_wait,
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
    assert!(ran.err.contains("is succeeded; only failed, retry_wait and aborted"), "{}", ran.err);
    let list = place.run(&["jobs", "list", "--state", "pending", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(place.job(&ended)["result"]["sent"], true);
}

fn an_aborted_job_is_resumed_by_retry(place: Place) {
    let id = place.enqueue(&[]);
    place.abort(&id);
    assert_eq!(place.job(&id)["state"], "aborted");
    place.run(&["jobs", "retry", &id]).ok();
    let job = place.job(&id);
    assert_eq!((&job["state"], &job["history"][2]["verb"]), (&"pending".into(), &"resume".into()));
}

fn a_snoozed_job_waits_and_says_until_when(place: Place) {
    let id = place.enqueue(&[]);
    let ran = place.run(&["jobs", "snooze", &id, "--for", "2h"]).ok();
    assert_eq!(ran.out, format!("{id}  snoozed for 2h\n"));
    assert_eq!(place.job(&id)["waiting_for"]["reason"], "time");
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("its time comes in "), "{shown}");
    assert_eq!(place.run(&["jobs", "snooze", &id, "--for", "0s"]).status, 2);
}

fn a_start_in_the_future_is_kept(place: Place) {
    for at in ["in 10m", "2100-01-01T00:00:00Z"] {
        let id = place.enqueue(&["--at", at]);
        assert_eq!(place.job(&id)["waiting_for"]["reason"], "time", "{at}");
    }
}

fn a_paused_queue_is_why_its_jobs_wait(place: Place) {
    let id = place.enqueue(&[]);
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("no living worker serves kind mail in queue default"), "{shown}");
    assert!(place.run(&["queues", "pause", "default"]).ok().out.contains("is paused"));
    assert!(place.run(&["queues", "pause", "default"]).ok().out.contains("paused already"));
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("queue default is paused"), "{shown}");
    assert!(place.run(&["queues", "list"]).ok().out.contains("paused"));
    assert!(place.run(&["queues", "resume", "default"]).ok().out.contains("goes on"));
}
