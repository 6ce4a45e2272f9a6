//! The states and the steps of the model of a job's life.

use std::collections::BTreeSet;

use milepost_core::transition::Verb;

use super::rules::Rule;
use super::store::{Claimed, LostRead, Registration, Store};

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) store: Store,
    pub(super) workers: Vec<Worker>,
    /// Calls that their callers no longer wait for, and that can still arrive.
    pub(super) late: BTreeSet<Call>,
    /// The run that a rescuer has read and will take back.
    pub(super) rescuer: Option<LostRead>,
    pub(super) faults: u8,
    pub(super) operations: u8,
}

impl State {
    /// Returns the first rule that was broken.
    #[must_use]
    pub const fn broken(&self) -> Option<Rule> {
        self.store.broken
    }

    /// Returns whether a worker still uses a registration. Its lease expires only by a fault, the lease of a crashed worker always.
    pub(super) fn is_used(&self, registration: Registration) -> bool {
        self.workers.iter().any(|worker| worker.registration == registration)
    }

    /// Replaces a worker by one that has no run and another registration. A report in flight can still arrive.
    pub(super) fn begin_again(&mut self, index: usize) {
        if let Activity::Repeats { token, verb } = self.workers[index].activity {
            self.late.insert(Call::End { token, verb });
        }
        let registration = self.store.register();
        self.workers[index] = Worker { registration, activity: Activity::Idle };
    }
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Worker {
    pub(super) registration: Registration,
    pub(super) activity: Activity,
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Activity {
    /// It has no run.
    Idle,
    /// It runs the handler. `told`: the stop request that a heartbeat returned.
    Runs { run: Claimed, told: Option<Verb> },
    /// It repeats the report of an end until it gets an answer.
    Repeats { token: usize, verb: Verb },
}

/// A call of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Call {
    Claim(Registration),
    End { token: usize, verb: Verb },
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is executed and answered.
    Answered,
    /// It is executed, and the answer is lost.
    AnswerLost,
    /// It does not arrive before its caller stops waiting, and can arrive later.
    Late,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A worker claims.
    Claim(usize, Delivery),
    /// A worker asks which runs it has, and starts the one that it does not know.
    Adopt(usize),
    /// A worker receives a stop request with a heartbeat.
    Told(usize),
    /// A worker reports the end of its run.
    Report(usize, Verb, Delivery),
    /// A worker registers again, because its heartbeat was refused.
    RegisterAgain(usize),
    /// A worker crashes, and is replaced.
    Crash(usize),
    /// The lease of a registration expires: its worker is frozen, cut off or gone.
    Expire(usize),
    /// The late call with this index arrives.
    Arrive(usize),
    /// A rescuer marks a worker as lost, and reads its run.
    MarkLost(usize),
    /// A rescuer reads the run of a worker that was marked before.
    ReadLost(usize),
    /// A rescuer takes back the run that it has read.
    TakeBack,
    /// A rescuer crashes.
    RescuerCrashes,
    /// An operator's verb; whether a running job gets a grace time; whether the job has a slot of its group.
    Operate(Verb, bool, bool),
    /// A resume of the batch withdraws a requested abort.
    WithdrawAbort,
    /// The grace time of a stop request passes.
    StopOverdue,
    /// The group gives the job a slot.
    Release,
}
