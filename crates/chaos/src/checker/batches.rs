//! Promises 15 and 16: order of tasks, versions of batches.

use std::collections::HashMap;

use super::losses::{Losses, Subject};
use super::states::by_job;
use super::verdict::Findings;
use crate::record::{Effect, Outcome, Record, Row, What};

/// Every task starts after all of its predecessors have ended; a signal that was acknowledged ends its wait; no counter of predecessors is negative or left open; a batch has ended exactly
/// when all of its tasks have.
pub(super) fn order(record: &Record, findings: &mut Findings) {
    let tasks: HashMap<(&str, &str), _> =
        record.tasks().map(|task| ((&*task.batch, &*task.task), task)).collect();
    let began = first_runs(record);
    let ended = ends(record);
    let mut open: HashMap<&str, u32> = HashMap::new();
    for task in record.tasks() {
        let (batch, name) = (&task.batch, &task.task);
        let is_open = !is_ended(&task.state);
        *open.entry(batch).or_default() += u32::from(is_open);
        findings.check(task.open_predecessors >= 0, || {
            format!("task {name} of batch {batch} has {} open predecessors", task.open_predecessors)
        });
        let begin = task.job.as_deref().and_then(|job| began.get(job));
        for before in &task.after {
            let Some(predecessor) = tasks.get(&(&**batch, &**before)) else {
                findings.check(false, || {
                    format!("task {name} of batch {batch} follows {before}, which does not exist")
                });
                continue;
            };
            let end = predecessor.job.as_deref().and_then(|job| ended.get(job));
            if let Some(begin) = begin {
                let is_before = end.is_some_and(|end| end <= begin) || predecessor.job.is_none();
                findings.check(is_before, || {
                    format!("task {name} of batch {batch} began at {begin}, its predecessor {before} ended at {end:?}")
                });
            }
        }
    }
    for row in &record.rows {
        let Row::Batch { id, state, .. } = row else { continue };
        let open = open.get(&**id).copied().unwrap_or_default();
        let is_over = matches!(&**state, "done" | "canceled");
        findings
            .check(is_over == (open == 0), || format!("batch {id} is {state}, {open} of its tasks are open"));
    }
    released_once(record, findings);
    signals(record, findings);
}

/// Every job is released at most once between two changes that make it wait again.
fn released_once(record: &Record, findings: &mut Findings) {
    let of_jobs = by_job(record);
    for task in record.tasks() {
        let Some(changes) = task.job.as_deref().and_then(|job| of_jobs.get(job)) else { continue };
        let mut releases = 0;
        for change in changes {
            match &*change.verb {
                "release" => releases += 1,
                "rerun" | "resume" | "retry_now" => releases = 0,
                _ => {}
            }
            findings.check(releases <= 1, || {
                format!("task {} of batch {} was released twice", task.task, task.batch)
            });
        }
    }
}

/// Returns when the first run of each job began whose claim was not lost: such a claim can have followed an end that was lost.
fn first_runs(record: &Record) -> HashMap<&str, i64> {
    let losses = Losses::of(record);
    let mut first = HashMap::new();
    for effect in &record.effects {
        if let Effect::Began { job, token, at_ms } = effect
            && !losses.is_lost(Subject::Claim(job, *token))
        {
            let at = first.entry(&**job).or_insert(*at_ms);
            *at = (*at).min(*at_ms);
        }
    }
    first
}

/// Returns when each job ended for the first time.
fn ends(record: &Record) -> HashMap<&str, i64> {
    let mut ends = HashMap::new();
    for (job, changes) in by_job(record) {
        if let Some(end) = changes.iter().find(|change| is_ended(&change.to)) {
            ends.insert(job, end.at_ms);
        }
    }
    ends
}

fn is_ended(state: &str) -> bool {
    matches!(state, "succeeded" | "canceled" | "skipped")
}

/// A task for which a signal was acknowledged does not wait for it any more when everything has ended.
fn signals(record: &Record, findings: &mut Findings) {
    let losses = Losses::of(record);
    let states: HashMap<(&str, &str), &str> =
        record.tasks().map(|task| ((&*task.batch, &*task.task), &*task.state)).collect();
    for operation in record.operations.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        let What::Signal { batch, task } = &operation.what else { continue };
        let still_waits = states.get(&(&**batch, &**task)) == Some(&"active");
        findings.check(!still_waits || losses.can_undo(operation), || {
            format!("task {task} of batch {batch} waits for a signal that was acknowledged")
        });
    }
}

/// A batch has the version with which it began, and a key has one batch.
pub(super) fn version(record: &Record, findings: &mut Findings) {
    let stored: HashMap<&str, u64> = record
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::Batch { id, version, .. } => Some((&**id, *version)),
            _ => None,
        })
        .collect();
    let losses = Losses::of(record);
    let mut keys: HashMap<(&str, Option<u32>), &str> = HashMap::new();
    for operation in record.operations.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        let What::StartBatch { batch, key, version } = &operation.what else { continue };
        let found = stored.get(&**batch).copied();
        let lost = losses.explains(Subject::Batch(batch), operation);
        findings.check(found == Some(*version) || found.is_none() && lost.is_some(), || {
            format!("batch {batch} began with version {version} and has version {found:?}")
        });
        if let Some(key) = key {
            let first = *keys.entry((key, lost)).or_insert(batch);
            findings.check(first == batch, || format!("the key {key:?} has the batches {first} and {batch}"));
        }
    }
}
