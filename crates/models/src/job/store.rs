//! The rows of one job in a store, and the verbs that change them.
//!
//! The guards are those of the SQL statements of both stores (`claim`, `running`, `ended_by_worker`, `request_stop`, `withdraw_abort`,
//! `mark_worker_lost`, `lost_runs`). The fields that only the rules read are `runs` and `broken`.

use std::time::Duration;

use milepost_core::finish::Finished;
use milepost_core::ident::WorkerId;
use milepost_core::rescue::LostRun;
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use super::rules::{Defect, Rule};

/// The index of a registration of a worker.
pub(super) type Registration = usize;

/// The state of a registration's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lease {
    /// The lease is valid.
    Valid,
    /// Its time has passed, and no rescuer has noticed it.
    Expired,
    /// A rescuer has marked the worker as lost.
    Lost,
}

/// The cause of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EndedBy {
    /// The worker reported this end, which a requested stop can have replaced.
    Worker(Verb),
    /// The worker lost its lease.
    Rescue,
    /// An operator stopped it, or its grace time passed.
    Operator,
}

/// What the history contains about a run, and what was requested of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) end: Option<(Verb, EndedBy)>,
    cancel_requested: bool,
}

/// A run that a claim returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Claimed {
    pub(super) token: usize,
    /// Whether no attempt is left after it.
    pub(super) is_last: bool,
}

/// A run of a lost worker, as a rescuer read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LostRead {
    pub(super) registration: Registration,
    token: usize,
    lost: (u32, u32, Option<Verb>),
}

/// The job's row, its history, and the registrations of workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) state: JobState,
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    /// The maximum number of attempts with which the job was enqueued.
    attempts_asked: u32,
    pub(super) token: usize,
    pub(super) worker: Option<Registration>,
    pub(super) stop: Option<Verb>,
    /// The runs, in the order of their tokens, from 1.
    pub(super) runs: Vec<Run>,
    pub(super) leases: Vec<Lease>,
    /// The first rule that was broken.
    pub(super) broken: Option<Rule>,
}

impl Store {
    /// Returns a store with one job and this number of registered workers.
    pub(super) fn new(state: JobState, attempts_asked: u32, workers: usize) -> Self {
        Self {
            state,
            attempt: 0,
            attempts_max: attempts_asked,
            attempts_asked,
            token: 0,
            worker: None,
            stop: None,
            runs: Vec::new(),
            leases: vec![Lease::Valid; workers],
            broken: None,
        }
    }

    /// Registers a worker.
    pub(super) fn register(&mut self) -> Registration {
        self.leases.push(Lease::Valid);
        self.leases.len() - 1
    }

    /// Claims the job, if it may be claimed and the worker's lease is valid.
    pub(super) fn claim(&mut self, worker: Registration, defect: Option<Defect>) -> Option<Claimed> {
        if self.leases[worker] != Lease::Valid || !self.state.is_waiting() {
            return None;
        }
        let token = if defect == Some(Defect::ClaimKeepsToken) { self.token.max(1) } else { self.token + 1 };
        if token <= self.runs.len() {
            self.breaks(Rule::TokensRise);
            return None;
        }
        if self.runs.iter().any(|run| run.end.is_none()) {
            self.breaks(Rule::LeasesDoNotOverlap);
        }
        if self.attempt + 1 > self.attempts_max {
            self.breaks(Rule::AttemptsAreLimited);
        }
        self.change(Verb::Claim, Readiness::Ready);
        (self.token, self.attempt, self.worker) = (token, self.attempt + 1, Some(worker));
        self.runs.push(Run { end: None, cancel_requested: false });
        self.held(worker)
    }

    /// Returns the run that a worker has according to the store.
    pub(super) fn held(&self, worker: Registration) -> Option<Claimed> {
        let is_held = self.state == JobState::Running && self.worker == Some(worker);
        is_held.then_some(Claimed { token: self.token, is_last: self.attempt >= self.attempts_max })
    }

    /// Stores the end of a run as its worker reports it.
    pub(super) fn finish(&mut self, token: usize, report: Verb, defect: Option<Defect>) -> Finished {
        let has_job = token == self.token || defect == Some(Defect::EndIsNotFenced);
        if self.state != JobState::Running || !has_job {
            return self.look_up(token, report, defect);
        }
        let verb = match report {
            Verb::Succeed => report,
            Verb::Cancel | Verb::Abort => self.that_stops(report, defect),
            _ => self.stop.unwrap_or(report),
        };
        self.leave(token, verb, EndedBy::Worker(report), matches!(report, Verb::Retry | Verb::Fail));
        Finished::Accepted
    }

    /// Returns whether the end of a run that has left the job was stored before. A failure is recognized if a requested stop replaced its
    /// verb; a yield is not, because the history has nothing of it.
    fn look_up(&mut self, token: usize, report: Verb, defect: Option<Defect>) -> Finished {
        let end = self.runs[token - 1].end;
        let is_failure = |verb| matches!(verb, Verb::Retry | Verb::Fail);
        let is_stored = match end {
            None | Some((_, EndedBy::Rescue)) => false,
            Some((Verb::Cancel | Verb::Abort, EndedBy::Worker(reported))) if is_failure(reported) => {
                is_failure(report)
            }
            Some((verb, _)) => verb == report || verb == Verb::Cancel && report == Verb::Abort,
        };
        let is_found = match defect {
            Some(Defect::EndRepeatedWithoutKey) => false,
            Some(Defect::RescueCountsAsReport) => end.is_some_and(|(verb, _)| verb == report),
            _ => is_stored,
        };
        if is_found != is_stored {
            self.breaks(Rule::RepeatsAreRecognized);
        }
        if is_found { Finished::Repeated } else { Finished::Fenced }
    }

    /// Applies an operator's verb, unless the state does not allow it. `grace`: a running job is first asked to stop.
    pub(super) fn operate(&mut self, verb: Verb, grace: bool, readiness: Readiness, defect: Option<Defect>) {
        if transition(Some(self.state), verb, readiness).is_err() {
            return;
        }
        if self.state != JobState::Running {
            self.attempts_max = match (self.state, verb) {
                (JobState::Failed, Verb::RetryNow) | (_, Verb::Rerun) => self.attempt + self.attempts_asked,
                (_, Verb::Resume) => self.attempts_max.max(self.attempt + 1),
                _ => self.attempts_max,
            };
            return self.change(verb, readiness);
        }
        let verb = self.that_stops(verb, defect);
        if grace {
            self.stop = Some(verb);
            self.runs[self.token - 1].cancel_requested |= verb == Verb::Cancel;
        } else {
            self.leave(self.token, verb, EndedBy::Operator, false);
        }
    }

    /// Withdraws a requested abort, as a resume of the job's batch does.
    pub(super) fn withdraw_abort(&mut self, defect: Option<Defect>) {
        if self.stop == Some(Verb::Abort) || defect == Some(Defect::ResumeLosesCancel) {
            self.stop = None;
        }
    }

    /// Ends a run that was asked to stop and whose grace time has passed.
    pub(super) fn stop_overdue(&mut self) {
        if let (JobState::Running, Some(verb)) = (self.state, self.stop) {
            self.leave(self.token, verb, EndedBy::Operator, false);
        }
    }

    /// Gives the job the slot of its group for which it waits.
    pub(super) fn release(&mut self) {
        self.change(Verb::Release, Readiness::Ready);
    }

    /// Marks a worker as lost if its lease has expired, and returns its run.
    pub(super) fn mark_lost(&mut self, worker: Registration, defect: Option<Defect>) -> Option<LostRead> {
        match self.leases[worker] {
            Lease::Lost => return None,
            Lease::Valid if defect != Some(Defect::RescueOfLiveWorker) => return None,
            Lease::Valid if self.held(worker).is_some() => self.breaks(Rule::LeasesDoNotOverlap),
            _ => {}
        }
        self.leases[worker] = Lease::Lost;
        self.read_lost(worker)
    }

    /// Returns the run of a worker that was marked as lost.
    pub(super) fn read_lost(&self, worker: Registration) -> Option<LostRead> {
        let Claimed { token, .. } = self.held(worker).filter(|_| self.leases[worker] == Lease::Lost)?;
        let lost = (self.attempt, self.attempts_max, self.stop);
        Some(LostRead { registration: worker, token, lost })
    }

    /// Takes the job back from a lost worker. The run is read again, under the lock of the row.
    pub(super) fn take_back(&mut self, read: LostRead, defect: Option<Defect>) {
        let current = match defect {
            Some(Defect::RescueWithoutStateGuard) => Some(read),
            _ => self.read_lost(read.registration),
        };
        let Some(LostRead { token, lost: (attempt, max_attempts, stop), .. }) = current else { return };
        let max_attempts = if defect == Some(Defect::RescueIgnoresMaximum) { u32::MAX } else { max_attempts };
        let lost = LostRun { attempt, max_attempts, stop, progressed: false };
        let end = lost.end(WorkerId(0), || Duration::ZERO);
        self.leave(token, end.verb, EndedBy::Rescue, true);
    }

    /// Ends a run: the row, and the history.
    fn leave(&mut self, token: usize, verb: Verb, by: EndedBy, has_failed: bool) {
        let run = self.runs[token - 1];
        if self.state.is_ended() {
            return self.breaks(Rule::EndedStaysEnded);
        }
        if run.end.is_some() || token != self.token {
            return self.breaks(Rule::OneEnd);
        }
        if run.cancel_requested && !matches!(verb, Verb::Cancel | Verb::Succeed) {
            self.breaks(Rule::CancelIsFinal);
        }
        self.runs[token - 1].end = Some((verb, by));
        self.attempt -= u32::from(verb.spares_attempt(has_failed));
        self.change(verb, Readiness::Ready);
        (self.worker, self.stop) = (None, None);
    }

    /// Changes the state by the product's table.
    fn change(&mut self, verb: Verb, readiness: Readiness) {
        if self.state.is_ended() && verb != Verb::Rerun {
            self.breaks(Rule::EndedStaysEnded);
        }
        match transition(Some(self.state), verb, readiness) {
            Ok(to) => self.state = to,
            Err(_) => self.breaks(Rule::ChangesAreAllowed),
        }
    }

    fn that_stops(&self, verb: Verb, defect: Option<Defect>) -> Verb {
        match defect {
            Some(Defect::AbortReplacesCancel) => verb,
            _ => Verb::that_stops(self.stop, verb),
        }
    }

    fn breaks(&mut self, rule: Rule) {
        self.broken.get_or_insert(rule);
    }
}
