//! Promises 3 and 4: ends and run tokens.

use std::collections::{HashMap, HashSet};

use super::losses::{Losses, Subject};
use super::states::by_job;
use super::verdict::Findings;
use crate::record::{Effect, EndAnswer, Outcome, Record, Row, What};

/// At most one end of a run is accepted; the accepted one is in the history, and no other.
pub(super) fn one_end(record: &Record, findings: &mut Findings) {
    one_effect(record, findings);
    reported(record, findings);
    let losses = Losses::of(record);
    let mut accepted: HashMap<(&str, u64), &str> = HashMap::new();
    for operation in &record.operations {
        let What::End { job, token, verb, answer: Some(EndAnswer::Accepted) } = &operation.what else {
            continue;
        };
        // Such a run can end again.
        if losses.explains(Subject::End(job, *token), operation).is_some() {
            continue;
        }
        let other = accepted.insert((job, *token), verb);
        findings.check(other.is_none(), || {
            format!(
                "two ends of job {job} with token {token} were accepted: {} and {verb}",
                other.unwrap_or_default()
            )
        });
    }
    let mut stored: HashMap<(&str, u64), &str> = HashMap::new();
    let mut known: HashSet<&str> = HashSet::new();
    for change in record.changes() {
        known.insert(&change.job);
        if change.from.as_deref() == Some("running") {
            let other = stored.insert((&change.job, change.token), &change.verb);
            findings.check(other.is_none(), || {
                format!("job {} left the run with token {} twice", change.job, change.token)
            });
        }
    }
    // The history of a job that was deleted is gone.
    for ((job, token), verb) in accepted.into_iter().filter(|((job, _), _)| known.contains(job)) {
        let found = stored.get(&(job, token)).copied();
        findings.check(found == Some(verb), || {
            format!("the accepted end {verb} of job {job} with token {token} is {found:?} in the history")
        });
    }
}

/// Every success of a job (several after reruns) has exactly one effect, that of its run, if the handler commits both together; there is no other.
fn one_effect(record: &Record, findings: &mut Findings) {
    let mut effects: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut kinds: HashSet<&str> = HashSet::new();
    for row in &record.rows {
        match row {
            Row::Effect { job, token } => effects.entry(job).or_default().push(*token),
            Row::Effectful { kind } => {
                kinds.insert(kind);
            }
            _ => {}
        }
    }
    let mut succeeded: HashMap<&str, Vec<u64>> = HashMap::new();
    for change in record.changes().filter(|change| change.verb == "succeed") {
        succeeded.entry(&change.job).or_default().push(change.token);
    }
    for job in record.jobs().filter(|job| kinds.contains(&*job.kind)) {
        let [mut tokens, mut expected] =
            [&mut effects, &mut succeeded].map(|of| of.remove(&*job.id).unwrap_or_default());
        tokens.sort_unstable();
        expected.sort_unstable();
        findings.check(tokens == expected, || {
            format!("job {} has effects of the runs {tokens:?} instead of {expected:?}", job.id)
        });
    }
}

/// A run succeeds only after its handler has ended: another end that is stored for it is that of an earlier run. A handler that commits an effect
/// together with its success is seen to end afterwards.
fn reported(record: &Record, findings: &mut Findings) {
    let mut ended: HashMap<(&str, u64), i64> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for effect in &record.effects {
        match effect {
            Effect::Began { job, .. } => drop(seen.insert(job)),
            Effect::Finished { job, token, at_ms } => drop(ended.insert((job, *token), *at_ms)),
            _ => {}
        }
    }
    let effectful: HashSet<&str> = record
        .rows
        .iter()
        .filter_map(|row| if let Row::Effectful { kind } = row { Some(&**kind) } else { None })
        .collect();
    let kinds: HashMap<&str, &str> = record.jobs().map(|job| (&*job.id, &*job.kind)).collect();
    for change in record.changes().filter(|change| change.verb == "succeed") {
        let kind = kinds.get(&*change.job).copied();
        if !seen.contains(&*change.job) || kind.is_none_or(|kind| effectful.contains(kind)) {
            continue;
        }
        let ended_ms = ended.get(&(&*change.job, change.token)).copied();
        findings.check(ended_ms.is_some_and(|ended_ms| ended_ms <= change.at_ms), || {
            let late = ended_ms.map_or("did not end".to_owned(), |ended_ms| {
                format!("ended {} ms later", ended_ms - change.at_ms)
            });
            format!("job {} with token {} succeeded, but its handler {late}", change.job, change.token)
        });
    }
}

/// Every claim has a larger token than the one before, also than those that were lost, and a run is taken away only after the end of its lease.
pub(super) fn tokens_rise(record: &Record, findings: &mut Findings) {
    let losses = Losses::of(record);
    let mut leased: HashMap<(&str, u64), i64> = HashMap::new();
    for operation in record.operations.iter().filter(|operation| !losses.can_undo(operation)) {
        if let (Outcome::Ok, What::Lease { job, token, until_ms }) = (operation.outcome, &operation.what) {
            let until = leased.entry((job, *token)).or_insert(*until_ms);
            *until = (*until).max(*until_ms);
        }
    }
    for (job, changes) in by_job(record) {
        let mut last = 0;
        for change in changes {
            if change.verb == "claim" {
                findings.check(change.token > last, || {
                    format!("job {job} was claimed with token {} after token {last}", change.token)
                });
                findings.check(!losses.is_lost(Subject::Claim(job, change.token)), || {
                    format!(
                        "job {job} was claimed with token {} again, after the first claim was lost",
                        change.token
                    )
                });
            } else {
                findings.check(change.token >= last, || {
                    format!("the token of job {job} fell from {last} to {}", change.token)
                });
            }
            last = last.max(change.token);
            let until = leased.get(&(job, change.token));
            if let (Some("lease_lost"), Some(&until)) = (change.error_code.as_deref(), until) {
                findings.check(change.at_ms >= until, || {
                    format!(
                        "job {job} with token {} was taken away {} ms before the end of its lease",
                        change.token,
                        until - change.at_ms
                    )
                });
            }
        }
    }
}
