//! Promises 5, 6, 8 and 9: states, history, attempts, and the end of everything.

use std::collections::{BTreeMap, HashMap};

use super::verdict::Findings;
use crate::record::{Change, Record};

const ENDED: [&str; 3] = ["succeeded", "canceled", "skipped"];

/// The allowed changes: the verb, the states before, the states after. Written down from `docs/STATES.md` a second time, so that a fault
/// in the product's own table is seen.
const ALLOWED: &[(&str, &[&str], &[&str])] = &[
    ("release", &["blocked"], &["pending"]),
    ("claim", &["pending", "retry_wait"], &["running"]),
    ("succeed", &["running"], &["succeeded"]),
    ("retry", &["running"], &["retry_wait"]),
    ("fail", &["running"], &["failed"]),
    ("yield", &["running"], &["pending"]),
    ("cancel", &["blocked", "pending", "running", "retry_wait", "failed", "aborted"], &["canceled"]),
    ("skip", &["blocked", "pending"], &["skipped"]),
    ("mark", &["blocked", "pending", "retry_wait", "failed"], &["succeeded"]),
    ("abort", &["blocked", "pending", "running", "retry_wait"], &["aborted"]),
    ("retry_now", &["retry_wait"], &["pending"]),
    ("retry_now", &["failed"], &["pending", "blocked"]),
    ("resume", &["aborted"], &["pending", "blocked"]),
    ("rerun", &["succeeded", "canceled", "skipped"], &["pending", "blocked"]),
    ("snooze", &["blocked", "pending", "retry_wait"], &["blocked", "pending", "retry_wait"]),
    (
        "edit",
        &["blocked", "pending", "retry_wait", "failed", "aborted"],
        &["blocked", "pending", "retry_wait", "failed", "aborted"],
    ),
];

/// Returns whether a change is allowed.
pub(super) fn is_allowed(verb: &str, from: Option<&str>, to: &str) -> bool {
    let Some(from) = from else { return verb == "create" && matches!(to, "pending" | "blocked") };
    ALLOWED.iter().any(|(name, before, after)| {
        *name == verb
            && before.contains(&from)
            && after.contains(&to)
            && (!matches!(verb, "snooze" | "edit") || from == to)
    })
}

/// Returns the changes of each job, in the order of the log.
pub(super) fn by_job(record: &Record) -> BTreeMap<&str, Vec<&Change>> {
    let mut jobs: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in record.changes() {
        jobs.entry(&change.job).or_default().push(change);
    }
    for changes in jobs.values_mut() {
        changes.sort_by_key(|change| change.pos);
    }
    jobs
}

/// No job leaves an ended state, except by a rerun.
pub(super) fn ended_stays_ended(record: &Record, findings: &mut Findings) {
    for (job, changes) in by_job(record) {
        for pair in changes.windows(2) {
            let [before, after] = pair else { continue };
            if ENDED.contains(&&*before.to) {
                findings.check(after.verb == "rerun", || {
                    format!("job {job} was {} and then changed by {}", before.to, after.verb)
                });
            }
        }
        let last = changes.last().map_or("", |change| &change.to);
        findings.check(!last.is_empty(), || format!("job {job} has no last state"));
    }
}

/// Every change is allowed and begins in the state in which the one before ended; the last one gives the state and token of the job.
pub(super) fn history_explains_state(record: &Record, findings: &mut Findings) {
    let mut states: HashMap<&str, (&str, u64)> = HashMap::new();
    for (job, changes) in by_job(record) {
        let mut state: Option<&str> = None;
        for change in &changes {
            let from = change.from.as_deref();
            // Retention can have deleted the first changes of a job that has ended.
            let is_first = state.is_none() && std::ptr::eq(*change, changes[0]);
            findings.check(is_first || from == state, || {
                format!("job {job} was {state:?}, but its next change ({}) begins in {from:?}", change.verb)
            });
            findings.check(is_allowed(&change.verb, from, &change.to), || {
                format!("job {job}: {} from {from:?} to {} is not allowed", change.verb, change.to)
            });
            state = Some(&change.to);
            states.insert(job, (&change.to, change.token));
        }
    }
    for job in record.jobs() {
        let replayed = states.get(&*job.id).copied();
        findings.check(replayed == Some((&*job.state, job.token)), || {
            format!("job {} is {} with token {}, its history says {replayed:?}", job.id, job.state, job.token)
        });
    }
}

/// No claim is earlier than the retry allows, and none exceeds the maximum of attempts.
pub(super) fn attempts(record: &Record, findings: &mut Findings) {
    let max: HashMap<&str, u32> = record.jobs().map(|job| (&*job.id, job.max_attempts)).collect();
    for (job, changes) in by_job(record) {
        let mut ready_at = None;
        for change in changes {
            match &*change.verb {
                "claim" => {
                    if let Some(ready_at) = ready_at.take() {
                        findings.check(change.at_ms >= ready_at, || {
                            format!(
                                "job {job} was claimed {} ms before its backoff had passed",
                                ready_at - change.at_ms
                            )
                        });
                    }
                    if let Some(&max) = max.get(job) {
                        findings.check(change.attempt <= max, || {
                            format!("job {job} began attempt {} of {max}", change.attempt)
                        });
                    }
                }
                "retry" | "yield" | "snooze" => ready_at = change.ready_at_ms,
                _ => ready_at = None,
            }
        }
    }
}

/// After all faults have stopped, nothing runs or waits any more.
pub(super) fn everything_ends(record: &Record, findings: &mut Findings) {
    for job in record.jobs() {
        let is_open = matches!(&*job.state, "blocked" | "pending" | "running" | "retry_wait");
        findings.check(!is_open, || format!("job {} is still {}", job.id, job.state));
    }
}
