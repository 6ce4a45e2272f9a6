//! Which acknowledged calls the losses of a record explain.
//!
//! A row is excused only if the lost server had it, the new server did not have it when it began, and the call was in progress or answered while
//! commits could be lost. Everything else that is missing is a broken promise.

use std::collections::{HashMap, HashSet};

use crate::record::{EndAnswer, Loss, LostRow, Operation, Outcome, Record, What};

/// What a row is about, as far as calls are answered with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject<'r> {
    /// A job that was stored.
    Job(&'r str),
    /// The claim of a job with this run token.
    Claim(&'r str, u64),
    /// The end of the run with this run token.
    End(&'r str, u64),
    /// A batch that was started.
    Batch(&'r str),
    /// An event that was emitted.
    Event(&'r str),
    /// The entry of the audit with this text.
    Mark(&'r str),
}

/// The losses of a record.
pub(crate) struct Losses<'r> {
    all: Vec<&'r Loss>,
    subjects: HashMap<Subject<'r>, Vec<&'r Loss>>,
    /// The aggregates and numbers of lost events.
    events: HashSet<(&'r str, u64)>,
}

impl<'r> Losses<'r> {
    pub(crate) fn of(record: &'r Record) -> Self {
        let mut losses = Self { all: Vec::new(), subjects: HashMap::new(), events: HashSet::new() };
        for loss in record.losses() {
            losses.all.push(loss);
            for row in &loss.rows {
                if let LostRow::Event { aggregate, sequence, .. } = row {
                    losses.events.insert((aggregate, *sequence));
                }
                if let Some(subject) = subject(row) {
                    losses.subjects.entry(subject).or_default().push(loss);
                }
            }
        }
        losses
    }

    /// Returns the number of the loss that explains why this row is missing, although the call was acknowledged.
    pub(crate) fn explains(&self, subject: Subject<'_>, call: &Operation) -> Option<u32> {
        let losses = self.subjects.get(&subject)?;
        losses.iter().find(|loss| is_during(loss, call)).map(|loss| loss.number)
    }

    /// Returns whether this row was lost.
    pub(crate) fn is_lost(&self, subject: Subject<'_>) -> bool {
        self.subjects.contains_key(&subject)
    }

    /// Returns whether an event with this number of the aggregate was lost. Receivers can have it nevertheless.
    pub(crate) fn is_lost_event(&self, aggregate: &str, sequence: u64) -> bool {
        self.events.contains(&(aggregate, sequence))
    }

    /// Returns whether a loss can have undone this call, for calls that leave no row.
    pub(crate) fn can_undo(&self, call: &Operation) -> bool {
        self.all.iter().any(|loss| is_during(loss, call))
    }
}

/// Returns the number of acknowledged calls whose rows were lost.
#[must_use]
pub fn lost_calls(record: &Record) -> usize {
    let losses = Losses::of(record);
    let is_lost = |call: &&Operation| {
        let subjects = subjects(&call.what);
        subjects.iter().any(|subject| losses.explains(*subject, call).is_some())
    };
    record.operations.iter().filter(|call| call.outcome == Outcome::Ok).filter(is_lost).count()
}

/// Returns whether the call was in progress, or answered, while the commits of the loss were made.
fn is_during(loss: &Loss, call: &Operation) -> bool {
    call.began_ms <= loss.until_ms && call.ended_ms.is_none_or(|ended| ended >= loss.since_ms)
}

fn subject(row: &LostRow) -> Option<Subject<'_>> {
    match row {
        LostRow::Job { job } => Some(Subject::Job(job)),
        LostRow::Change { job, token, is_end: true, .. } => Some(Subject::End(job, *token)),
        LostRow::Change { job, token, verb, .. } if verb == "claim" => Some(Subject::Claim(job, *token)),
        LostRow::Change { .. } => None,
        LostRow::Batch { batch } => Some(Subject::Batch(batch)),
        LostRow::Event { event, .. } => Some(Subject::Event(event)),
        LostRow::Audit { mark } => Some(Subject::Mark(mark)),
    }
}

/// Returns the rows that an acknowledged call has.
fn subjects(what: &What) -> Vec<Subject<'_>> {
    match what {
        What::Enqueue { jobs } => {
            jobs.iter().map(|job| Subject::Job(job.answer.as_ref().unwrap_or(&job.id))).collect()
        }
        What::End { job, token, answer: Some(EndAnswer::Accepted), .. } => vec![Subject::End(job, *token)],
        What::Act { mark, changed: true, .. } => vec![Subject::Mark(mark)],
        What::StartBulk { run, .. } => vec![Subject::Job(run)],
        What::StartBatch { batch, .. } => vec![Subject::Batch(batch)],
        What::Emit { event, .. } => vec![Subject::Event(event)],
        _ => Vec::new(),
    }
}
