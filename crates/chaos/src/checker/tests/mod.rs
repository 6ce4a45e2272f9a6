//! For each promise: a record that keeps it, and records that break it.

mod cases;
mod good;
mod losses;

use std::fs;

use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use super::*;
use crate::record::{Operation, Outcome, What};
use cases::CASES;
use good::{emit, good};

#[test]
fn a_record_without_faults_keeps_every_promise() {
    for verdict in check(&good()) {
        assert!(verdict.is_kept(), "{verdict}");
    }
}

#[test]
fn nothing_is_said_about_promises_that_a_record_does_not_show() {
    for verdict in check(&Record::default()) {
        assert!(!verdict.is_kept() && verdict.violated == 0, "{verdict}");
    }
}

#[test]
fn every_broken_promise_is_found() {
    for (number, name, break_it) in CASES {
        let mut record = good();
        break_it(&mut record);
        let verdicts = check(&record);
        let verdict = &verdicts[usize::from(*number) - 1];
        assert_eq!(verdict.number, *number);
        assert!(verdict.violated > 0, "{name}: {verdict}");
    }
    for number in 1..=22 {
        assert!(CASES.iter().any(|(case, ..)| *case == number), "promise {number} is never broken");
    }
}

#[test]
fn an_event_can_have_been_committed_by_a_call_without_an_answer_before_a_later_event() {
    let mut record = good();
    let calls = record.operations.iter_mut();
    let first =
        calls.rev().find(|call| matches!(&call.what, What::Emit { event, .. } if event == "e1")).unwrap();
    *first = Operation { began_ms: 450, ended_ms: Some(451), ..emit("e1", Outcome::Ok) };
    let order = &check(&record)[16];
    assert!(order.violated > 0, "without a call before that of e2, e1 is in the wrong place: {order}");
    record.operations.insert(0, Operation { began_ms: 390, ended_ms: None, ..emit("e1", Outcome::Unknown) });
    assert!(check(&record)[16].is_kept(), "{}", check(&record)[16]);
}

#[test]
fn the_allowed_changes_are_those_of_the_product() {
    let states = JobState::ALL.iter().map(|state| Some(*state)).chain([None]);
    for from in states {
        for verb in Verb::ALL {
            for readiness in [Readiness::Ready, Readiness::Held] {
                let Ok(to) = transition(from, *verb, readiness) else { continue };
                let from = from.map(JobState::as_str);
                assert!(states::is_allowed(verb.as_str(), from, to.as_str()), "{verb} from {from:?} to {to}");
            }
            for to in JobState::ALL {
                let is_possible = [Readiness::Ready, Readiness::Held]
                    .iter()
                    .any(|readiness| transition(from, *verb, *readiness) == Ok(*to));
                let from = from.map(JobState::as_str);
                let is_allowed = states::is_allowed(verb.as_str(), from, to.as_str());
                assert_eq!(is_allowed, is_possible, "{verb} from {from:?} to {to}");
            }
        }
    }
}

#[test]
fn the_promises_are_those_of_the_guarantees() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/GUARANTEES.md");
    let text = fs::read_to_string(path).unwrap();
    let promises = text.split("## Failover").next().unwrap();
    let numbers: Vec<usize> =
        promises.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    assert_eq!(numbers, (1..=PROMISES.len()).collect::<Vec<_>>());
}
