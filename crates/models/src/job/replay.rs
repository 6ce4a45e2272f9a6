//! Replay of the recorded history of a job: every change must be a step of the model.

use milepost_core::finish::Finished;
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};
use thiserror::Error;

use super::store::{EndedBy, Lease, Store};

/// What a real run recorded about one job.
#[derive(Clone, Debug)]
pub struct RecordedJob {
    /// The maximum number of attempts at the end.
    pub attempts_max: u32,
    /// The complete history, in its order.
    pub changes: Vec<Change>,
    /// The leases under which workers had the job.
    pub leases: Vec<RecordedLease>,
    /// The ends that workers reported, and the answers.
    pub reports: Vec<Report>,
}

/// An entry of the history.
#[derive(Clone, Debug)]
pub struct Change {
    /// The verb.
    pub verb: Verb,
    /// The state before; `None` at the creation.
    pub from: Option<JobState>,
    /// The state after.
    pub to: JobState,
    /// The number of the attempt.
    pub attempt: u32,
    /// The run token.
    pub token: u64,
    /// When it happened, by the store's clock.
    pub at_ms: i64,
    /// The failure of the attempt, if it had failed.
    pub failure: Option<AttemptFailure>,
}

/// The failure of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// The worker lost its lease.
    LeaseLost,
    /// The worker reported another failure.
    Reported,
}

/// A lease of a run.
#[derive(Clone, Copy, Debug)]
pub struct RecordedLease {
    /// The run token.
    pub token: u64,
    /// The end of the lease, by the store's clock.
    pub until_ms: i64,
}

/// A reported end of a run, with the answer of the store.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The run token.
    pub token: u64,
    /// The reported end.
    pub verb: Verb,
    /// The answer.
    pub answer: Finished,
}

/// A part of a record that the model does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The change with this number, from 1.
    #[error(
        "change {number} ({verb} to {to}, attempt {attempt}, token {token}) is no step of the model: {why}"
    )]
    Change {
        /// Its number in the history.
        number: usize,
        /// Its verb.
        verb: Verb,
        /// Its state after.
        to: JobState,
        /// Its attempt.
        attempt: u32,
        /// Its run token.
        token: u64,
        /// The reason.
        why: String,
    },
    /// The job's row has another maximum number of attempts than its history leads to.
    #[error("no number of attempts at the enqueue leads to {0} attempts at the end")]
    AttemptsMax(u32),
    /// A lease of a run that no claim began.
    #[error("a worker had a lease for token {0}, with which no claim began a run")]
    Lease(u64),
    /// The answer to a report contradicts the history.
    #[error(
        "the end {verb} of the run with token {token} was answered with {answer:?}, but the run ended with {stored:?}"
    )]
    Report {
        /// The run token.
        token: u64,
        /// The reported end.
        verb: Verb,
        /// The answer.
        answer: Finished,
        /// The end of the run in the model.
        stored: Option<Verb>,
    },
}

/// Replays a job. The number of attempts with which it was enqueued is not recorded, so any number may explain its history.
///
/// # Errors
/// The first part that the model does not allow.
pub fn replay(job: &RecordedJob) -> Result<(), Refused> {
    let mut furthest = None;
    for attempts_asked in (1..=job.attempts_max).rev() {
        let refused = match replay_history(job, attempts_asked) {
            Ok(replayed) if replayed.store.attempts_max == job.attempts_max => {
                return check_workers(job, replayed);
            }
            Ok(_) => Refused::AttemptsMax(job.attempts_max),
            Err(refused) => refused,
        };
        furthest = match furthest {
            Some(furthest) => Some(further(furthest, refused)),
            None => Some(refused),
        };
    }
    Err(furthest.unwrap_or(Refused::AttemptsMax(job.attempts_max)))
}

/// Returns the refusal that comes later in the history.
fn further(one: Refused, other: Refused) -> Refused {
    match (&one, &other) {
        (Refused::Change { number, .. }, Refused::Change { number: others, .. }) if number < others => other,
        (Refused::Change { .. }, Refused::AttemptsMax(_)) => other,
        _ => one,
    }
}

/// The state of the model after the history.
struct Replayed {
    store: Store,
    /// The recorded tokens of the runs. The model counts them from 1; PostgreSQL can leave tokens out after a failover.
    tokens: Vec<u64>,
}

impl Replayed {
    /// Returns the model's token of a recorded one.
    fn token(&self, recorded: u64) -> Option<usize> {
        self.tokens.iter().position(|token| *token == recorded).map(|index| index + 1)
    }
}

fn replay_history(job: &RecordedJob, attempts_asked: u32) -> Result<Replayed, Refused> {
    let store = Store::new(JobState::Pending, attempts_asked, 0);
    let mut replayed = Replayed { store, tokens: Vec::new() };
    for (number, change) in (1..).zip(&job.changes) {
        let step = if number == 1 { create(&mut replayed, change) } else { step(&mut replayed, change, job) };
        step.map_err(|why| {
            let Change { verb, to, attempt, token, .. } = *change;
            Refused::Change { number, verb, to, attempt, token, why }
        })?;
    }
    Ok(replayed)
}

fn create(replayed: &mut Replayed, change: &Change) -> Result<(), String> {
    let is_creation = change.verb == Verb::Create && change.from.is_none();
    let can_begin = matches!(change.to, JobState::Pending | JobState::Blocked);
    if !(is_creation && can_begin && change.token == 0 && change.attempt == 0) {
        return Err("a history begins with the creation of the job".to_owned());
    }
    replayed.store.state = change.to;
    Ok(())
}

/// Applies one change to the model and compares the result.
fn step(replayed: &mut Replayed, change: &Change, job: &RecordedJob) -> Result<(), String> {
    let before = replayed.store.state;
    if change.from != Some(before) {
        return Err(format!("the job was {before}"));
    }
    if transition(change.from, change.verb, readiness(change)) != Ok(change.to) {
        return Err(format!("a job that is {before} does not become {} so", change.to));
    }
    // The history has the attempt of a run also if its end does not use it up.
    let attempt_before = replayed.store.attempt;
    apply(replayed, change, job)?;
    let store = &replayed.store;
    let attempt = if change.verb == Verb::Claim { store.attempt } else { attempt_before };
    match store.broken {
        Some(rule) => Err(format!("it breaks the rule \"{}\"", rule.name())),
        None if store.state != change.to => Err(format!("the job is {} in the model", store.state)),
        None if attempt != change.attempt => Err(format!("the model has attempt {attempt}")),
        None => Ok(()),
    }
}

/// Applies one change to the model.
fn apply(replayed: &mut Replayed, change: &Change, job: &RecordedJob) -> Result<(), String> {
    let last_token = replayed.tokens.last().copied().unwrap_or_default();
    let store = &mut replayed.store;
    if change.verb == Verb::Claim {
        if change.token <= last_token {
            return Err(format!("the last token was {last_token}"));
        }
        let worker = store.register();
        store.claim(worker, None).ok_or("the job could not be claimed")?;
        replayed.tokens.push(change.token);
        return Ok(());
    }
    if change.token != last_token {
        return Err(format!("the token was {last_token}"));
    }
    match (change.verb, change.failure) {
        (verb, Some(AttemptFailure::LeaseLost)) => rescue(store, verb, is_after_lease(change, job))?,
        (verb @ (Verb::Cancel | Verb::Abort), Some(AttemptFailure::Reported)) if store.worker.is_some() => {
            // The attempt failed after the job was requested to stop.
            store.operate(verb, true, Readiness::Ready, None);
            store.finish(store.token, Verb::Retry, None);
        }
        (verb @ (Verb::Succeed | Verb::Retry | Verb::Fail | Verb::Yield), _) => {
            store.finish(store.token, verb, None);
        }
        (Verb::Release, _) => store.release(),
        (verb, _) => store.operate(verb, false, readiness(change), None),
    }
    Ok(())
}

/// Returns whether the job had a slot of its group, as its state after the change shows.
fn readiness(change: &Change) -> Readiness {
    if change.to == JobState::Blocked { Readiness::Held } else { Readiness::Ready }
}

/// Takes the job back from its worker, which was asked to stop before if the run ends so.
fn rescue(store: &mut Store, verb: Verb, is_after_lease: bool) -> Result<(), String> {
    let worker = store.worker.ok_or("no worker had the job")?;
    if matches!(verb, Verb::Cancel | Verb::Abort) {
        store.operate(verb, true, Readiness::Ready, None);
    }
    if is_after_lease {
        store.leases[worker] = Lease::Expired;
    }
    let read = store.mark_lost(worker, None).ok_or("the lease of its worker had not expired")?;
    store.take_back(read, None);
    Ok(())
}

fn is_after_lease(change: &Change, job: &RecordedJob) -> bool {
    let mut leases = job.leases.iter().filter(|lease| lease.token == change.token);
    leases.all(|lease| lease.until_ms <= change.at_ms)
}

/// Compares the leases of workers and the answers to their reports with the runs of the model.
fn check_workers(job: &RecordedJob, mut replayed: Replayed) -> Result<(), Refused> {
    if let Some(lease) = job.leases.iter().find(|lease| replayed.token(lease.token).is_none()) {
        return Err(Refused::Lease(lease.token));
    }
    let mut accepted = Vec::new();
    for &Report { token, verb, answer } in &job.reports {
        let run = replayed.token(token);
        let end = run.and_then(|run| replayed.store.runs[run - 1].end);
        let is_right = match (answer, run) {
            (_, None) => false,
            (Finished::Accepted, Some(run)) => {
                let is_first = !accepted.contains(&run);
                accepted.push(run);
                is_first && is_stored(end, verb)
            }
            (answer, Some(run)) => end.is_some() && replayed.store.finish(run, verb, None) == answer,
        };
        if !is_right {
            return Err(Refused::Report { token, verb, answer, stored: end.map(|(verb, _)| verb) });
        }
    }
    Ok(())
}

/// Returns whether the store keeps this end for an accepted report. A requested stop replaces every end but a success.
fn is_stored(end: Option<(Verb, EndedBy)>, report: Verb) -> bool {
    match end {
        None | Some((_, EndedBy::Rescue)) => false,
        Some((verb, _)) => {
            let is_stop = matches!(verb, Verb::Cancel | Verb::Abort);
            verb == report || is_stop && report != Verb::Succeed
        }
    }
}
