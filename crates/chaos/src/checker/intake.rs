//! Promises 1, 2 and 11: stored jobs stay, refused calls leave nothing, keys are unique.

use std::collections::{HashMap, HashSet};

use super::losses::{Losses, Subject};
use super::verdict::Findings;
use crate::record::{AskedJob, Effect, EndAnswer, Operation, Outcome, Record, What};

/// Every call that was acknowledged has its jobs, every refused one has none, and one without an answer has all of its jobs or none.
pub(super) fn durable(record: &Record, findings: &mut Findings) {
    let stored: HashSet<&str> = record.jobs().map(|job| &*job.id).collect();
    let may_be_deleted = record.has_retention();
    let elsewhere: HashSet<&str> = acknowledged(record).map(|(_, job)| job).collect();
    let losses = Losses::of(record);
    for (operation, jobs) in enqueues(record) {
        let client = &operation.client;
        match operation.outcome {
            Outcome::Ok if may_be_deleted => {}
            Outcome::Ok => {
                for job in jobs {
                    let id = stored_as(job);
                    let is_lost = losses.explains(Subject::Job(id), operation).is_some();
                    findings.check(stored.contains(id) || is_lost, || {
                        format!("job {id}, acknowledged to {client}, is missing")
                    });
                }
            }
            Outcome::Failed => {
                for job in jobs {
                    let is_there = stored.contains(&*job.id) && !elsewhere.contains(&*job.id);
                    findings
                        .check(!is_there, || format!("job {}, refused to {client}, is in the store", job.id));
                }
            }
            Outcome::Unknown => {
                // Another call can have stored a job under the key first.
                let own: Vec<&AskedJob> = jobs.iter().filter(|job| job.key.is_none()).collect();
                let found = own.iter().filter(|job| stored.contains(&*job.id)).count();
                let is_whole = found == 0 || found == own.len() || may_be_deleted;
                findings.check(is_whole, || {
                    format!("of {} jobs of one call of {client}, {found} are in the store", own.len())
                });
            }
        }
    }
}

/// Two jobs never have the same key, and all calls with a key were answered with the same job, unless that was lost.
pub(super) fn unique_keys(record: &Record, findings: &mut Findings) {
    let mut stored: HashMap<(&str, &str), &str> = HashMap::new();
    for job in record.jobs() {
        let Some(key) = &job.key else { continue };
        let other = stored.insert((&job.kind, key), &job.id);
        findings.check(other.is_none(), || {
            format!("jobs {} and {} have the key {key:?}", other.unwrap_or_default(), job.id)
        });
    }
    let may_be_deleted = record.has_retention();
    let losses = Losses::of(record);
    let mut answered: HashMap<(&str, &str, Option<u32>), &str> = HashMap::new();
    for (operation, jobs) in enqueues(record) {
        if operation.outcome != Outcome::Ok || may_be_deleted {
            continue;
        }
        for job in jobs {
            let Some(key) = &job.key else { continue };
            let answer = stored_as(job);
            let lost = losses.explains(Subject::Job(answer), operation);
            let first = *answered.entry((&job.kind, key, lost)).or_insert(answer);
            findings.check(first == answer, || {
                format!("the key {key:?} was answered with job {first} and with job {answer}")
            });
        }
    }
}

/// Every acknowledged job is there, or had ended: a handler ended it, and nothing revived it since.
pub(super) fn never_deleted(record: &Record, findings: &mut Findings) {
    let stored: HashSet<&str> = record.jobs().map(|job| &*job.id).collect();
    let ended = ended(record);
    let revived = revived(record);
    let losses = Losses::of(record);
    for (operation, id) in acknowledged(record) {
        let has_ended = ended.get(id).is_some_and(|ended| revived.get(id).is_none_or(|began| began <= ended));
        let is_lost = losses.explains(Subject::Job(id), operation).is_some();
        findings.check(stored.contains(id) || has_ended || is_lost, || {
            format!("job {id} is missing, and nothing had ended it")
        });
    }
}

/// Returns when a handler ended a job for the last time, if one did. An end without an answer can come at any time.
fn ended(record: &Record) -> HashMap<&str, i64> {
    let mut last: HashMap<&str, i64> = HashMap::new();
    let handlers = record.effects.iter().filter_map(|effect| match effect {
        Effect::Finished { job, at_ms, .. } => Some((&**job, *at_ms)),
        _ => None,
    });
    let calls = record.operations.iter().filter_map(|operation| match &operation.what {
        What::End { job, answer, .. } if *answer != Some(EndAnswer::Fenced) => {
            Some((&**job, operation.ended_ms.unwrap_or(i64::MAX)))
        }
        _ => None,
    });
    for (job, at_ms) in handlers.chain(calls) {
        let ended = last.entry(job).or_insert(at_ms);
        *ended = at_ms.max(*ended);
    }
    last
}

/// Returns when the last acknowledged action began by which a job has not ended any more.
fn revived(record: &Record) -> HashMap<&str, i64> {
    let mut last: HashMap<&str, i64> = HashMap::new();
    for operation in record.operations.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        if let What::Act { changed: true, revived: Some(job), .. } = &operation.what {
            let began = last.entry(job).or_insert(operation.began_ms);
            *began = operation.began_ms.max(*began);
        }
    }
    last
}

fn enqueues(record: &Record) -> impl Iterator<Item = (&Operation, &Vec<AskedJob>)> {
    record.operations.iter().filter_map(|operation| match &operation.what {
        What::Enqueue { jobs } => Some((operation, jobs)),
        _ => None,
    })
}

/// Returns the ids of all jobs whose call was acknowledged, with the call.
fn acknowledged(record: &Record) -> impl Iterator<Item = (&Operation, &str)> {
    let calls = enqueues(record).filter(|(operation, _)| operation.outcome == Outcome::Ok);
    calls.flat_map(|(operation, jobs)| jobs.iter().map(move |job| (operation, stored_as(job))))
}

/// Returns the id under which a job is stored, after an acknowledged call.
fn stored_as(job: &AskedJob) -> &str {
    job.answer.as_ref().unwrap_or(&job.id)
}
