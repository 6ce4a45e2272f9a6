//! Replay of the jobs of a record in the model of a job's life.
//!
//! This is not part of the checker, because the model uses the product's table of transitions.

use std::collections::BTreeMap;
use std::fmt;

use milepost_core::finish::Finished;
use milepost_core::named::UnknownName;
use milepost_models::job::replay::{AttemptFailure, Change, RecordedJob, RecordedLease, Report, replay};

use crate::checker::losses::{Losses, Subject};
use crate::record::{self, EndAnswer, Outcome, Record, What};

/// The result of a replay.
#[derive(Debug, Default)]
pub struct Replay {
    /// The number of jobs.
    pub jobs: usize,
    /// The number of their changes.
    pub changes: usize,
    /// The number of jobs whose history is not complete, because retention is on.
    pub skipped: usize,
    /// The jobs that the model does not allow, each with the change and the reason.
    pub refused: Vec<String>,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, changes, skipped, refused } = self;
        write!(f, "model: {jobs} jobs with {changes} changes, {skipped} skipped, {} refused", refused.len())?;
        refused.iter().take(REFUSED_MAX).try_for_each(|job| write!(f, "\n    {job}"))
    }
}

/// The maximum number of refused jobs that are printed.
const REFUSED_MAX: usize = 10;

/// Replays every job of a record: its history, the leases of its workers, and the answers to the ends that they reported.
#[must_use]
pub fn replay_jobs(record: &Record) -> Replay {
    let mut of_jobs: BTreeMap<&str, RecordedJob> = BTreeMap::new();
    let mut result = Replay::default();
    for job in record.jobs() {
        let (attempts_max, changes) = (job.max_attempts, Vec::new());
        let empty = RecordedJob { attempts_max, changes, leases: Vec::new(), reports: Vec::new() };
        of_jobs.insert(&job.id, empty);
    }
    let mut changes: Vec<&record::Change> = record.changes().collect();
    changes.sort_by_key(|change| change.pos);
    for change in changes {
        let Some(job) = of_jobs.get_mut(&*change.job) else { continue };
        match read_change(change) {
            Ok(change) => job.changes.push(change),
            Err(unknown) => result.refused.push(format!("job {}: {unknown}", change.job)),
        }
    }
    add_operations(record, &mut of_jobs, &mut result);
    let has_retention = record.has_retention();
    for (id, job) in of_jobs {
        if has_retention && job.changes.first().is_none_or(|first| first.from.is_some()) {
            result.skipped += 1;
            continue;
        }
        result.jobs += 1;
        result.changes += job.changes.len();
        if let Err(refused) = replay(&job) {
            result.refused.push(format!("job {id}: {refused}"));
        }
    }
    result
}

/// Adds the leases and the answered ends, except those that a loss of commits can have undone.
fn add_operations(record: &Record, of_jobs: &mut BTreeMap<&str, RecordedJob>, result: &mut Replay) {
    let losses = Losses::of(record);
    for operation in &record.operations {
        match &operation.what {
            What::Lease { job, token, until_ms }
                if operation.outcome == Outcome::Ok && !losses.can_undo(operation) =>
            {
                if let Some(job) = of_jobs.get_mut(&**job) {
                    job.leases.push(RecordedLease { token: *token, until_ms: *until_ms });
                }
            }
            What::End { job, token, verb, answer: Some(answer) } => {
                let Some(recorded) = of_jobs.get_mut(&**job) else { continue };
                let is_undone = match answer {
                    EndAnswer::Accepted => losses.explains(Subject::End(job, *token), operation).is_some(),
                    EndAnswer::Repeated | EndAnswer::Fenced => losses.can_undo(operation),
                };
                if is_undone || losses.is_lost(Subject::Claim(job, *token)) {
                    continue;
                }
                match verb.parse() {
                    Ok(verb) => {
                        recorded.reports.push(Report { token: *token, verb, answer: read_answer(*answer) })
                    }
                    Err(unknown) => result.refused.push(format!("job {job}: {unknown}")),
                }
            }
            _ => {}
        }
    }
}

fn read_change(change: &record::Change) -> Result<Change, UnknownName> {
    Ok(Change {
        verb: change.verb.parse()?,
        from: change.from.as_deref().map(str::parse).transpose()?,
        to: change.to.parse()?,
        attempt: change.attempt,
        token: change.token,
        at_ms: change.at_ms,
        failure: change.error_code.as_deref().map(|code| match code {
            "lease_lost" => AttemptFailure::LeaseLost,
            _ => AttemptFailure::Reported,
        }),
    })
}

const fn read_answer(answer: EndAnswer) -> Finished {
    match answer {
        EndAnswer::Accepted => Finished::Accepted,
        EndAnswer::Repeated => Finished::Repeated,
        EndAnswer::Fenced => Finished::Fenced,
    }
}

#[cfg(test)]
mod tests;
