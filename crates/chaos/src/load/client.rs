//! A client process: enqueues jobs, emits events, starts batches and bulk jobs, each call until its outcome is known, and operates on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use milepost_core::audit::Actor;
use milepost_core::dag::checked::Dag;
use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::{Enqueued, NewJob, Priority};
use milepost_core::port::{JobEdit, Operated, Operation, Store, StoreResult};
use milepost_core::transition::Verb;
use milepost_postgres::WakeMode;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::setup::{EFFECT, FLAKY, GROUPS, PLAIN, QUEUE, RATED, versions};
use super::{Pace, ProcessArgs, open, until_parent_ends};
use crate::record::{AskedJob, Outcome, What};
use crate::witness::{Begun, Witness};

/// The number of concurrent callers of a process.
const CALLERS: u64 = 4;
/// The pause before a call is repeated whose outcome is unknown.
const REPEAT_AFTER: Duration = Duration::from_millis(100);
/// The number of different keys.
const KEYS: u32 = 500;
/// The number of aggregates.
const AGGREGATES: u32 = 20;

/// Calls until the parent closes standard input.
///
/// # Errors
/// When the witness cannot write.
pub async fn run(args: ProcessArgs) -> Result<()> {
    let home = open(&args.store, WakeMode::Poll).await;
    let witness = Arc::new(args.witness()?);
    call(home.store(), witness, args.seed, Pace::REAL, until_parent_ends()).await;
    Ok(())
}

/// Calls with several callers until it is asked to stop.
pub async fn call(
    store: Arc<dyn Store>,
    witness: Arc<Witness>,
    seed: u64,
    pace: Pace,
    stop: CancellationToken,
) {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let caller = Caller {
            store: store.clone(),
            name: format!("{}.{number}", witness.name()),
            witness: witness.clone(),
            random: Rng::with_seed(seed.wrapping_mul(CALLERS).wrapping_add(number)),
            pace,
            calls: 0,
            mine: Vec::new(),
            batches: Vec::new(),
            unsignaled: VecDeque::new(),
            runs: Vec::new(),
            versions: versions(pace.attempt_max),
        };
        callers.spawn(caller.call_until(stop.clone()));
    }
    callers.join_all().await;
}

/// One of the concurrent callers.
pub(super) struct Caller {
    pub(super) store: Arc<dyn Store>,
    pub(super) witness: Arc<Witness>,
    name: String,
    pub(super) random: Rng,
    pub(super) pace: Pace,
    pub(super) calls: u64,
    /// Jobs that this caller has enqueued.
    mine: Vec<JobId>,
    /// Batches that it has started.
    pub(super) batches: Vec<BatchId>,
    /// Those of them to which it has not sent their signal.
    pub(super) unsignaled: VecDeque<BatchId>,
    /// Runs of the bulk job that it has started.
    pub(super) runs: Vec<JobId>,
    /// The versions of the DAG.
    pub(super) versions: [Dag; 2],
}

impl Caller {
    async fn call_until(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.random.u8(..200) {
                0..88 => self.enqueue().await,
                88..146 => self.emit().await,
                146..182 => self.operate().await,
                182..186 => self.start_batch().await,
                186..188 => self.operate_batch().await,
                188..191 => self.signal_batch().await,
                191..195 => self.start_bulk().await,
                _ => self.interrupt_bulk().await,
            }
            tokio::time::sleep(Duration::from_millis(self.random.u64(..self.pace.call_pause_ms_max))).await;
        }
    }

    async fn enqueue(&mut self) {
        let jobs: Vec<NewJob> = (0..self.random.usize(1..6)).map(|_| self.job()).collect();
        let what = |enqueued: Option<&Vec<Enqueued>>| {
            let ids: Vec<JobId> = enqueued.into_iter().flatten().map(|enqueued| enqueued.job).collect();
            asked(&jobs, &ids)
        };
        let enqueued = self.until_known(what, || self.store.enqueue_many(&jobs)).await;
        self.mine.extend(enqueued.into_iter().flatten().map(|enqueued| enqueued.job));
        // A job that was just enqueued often still waits.
        if let Some(&newest) = self.mine.last()
            && self.mine.len().is_multiple_of(4)
        {
            self.edit(newest).await;
        }
    }

    /// Repeats a call until its outcome is known. Returns the answer, if it was acknowledged. `what` describes the call, with its answer.
    pub(super) async fn until_known<T, F: Future<Output = StoreResult<T>>>(
        &self,
        what: impl Fn(Option<&T>) -> What,
        call: impl Fn() -> F,
    ) -> Option<T> {
        loop {
            let begun = self.witness.begins(&what(None));
            let answer = call().await;
            let outcome = outcome(&answer);
            self.witness.ended(&begun, outcome, what(answer.as_ref().ok()));
            if outcome != Outcome::Unknown {
                return answer.ok();
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }

    fn job(&mut self) -> NewJob {
        let kind = [EFFECT, PLAIN, FLAKY, RATED][self.random.usize(..4)];
        let job = NewJob::new(kind, &self.calls).expect("JSON").queue(QUEUE).timeout(self.pace.attempt_max);
        let job = if self.random.u8(..4) == 0 { job.key(self.random.u32(..KEYS).to_string()) } else { job };
        if self.random.u8(..4) == 0 { job.group(GROUPS[self.random.usize(..GROUPS.len())].0) } else { job }
    }

    async fn emit(&mut self) {
        let aggregate = Aggregate::new("order", self.random.u32(..AGGREGATES).to_string());
        let event = NewEvent::new(aggregate, "order.changed", &self.random.u64(..)).expect("JSON");
        let what = || What::Emit {
            event: event.id.to_string(),
            aggregate: event.aggregate.to_string(),
            payload: event.payload.get().to_owned(),
        };
        self.until_known(|_| what(), || self.store.emit(&event)).await;
    }

    /// Operates on one of its jobs, once: an operator who gets no answer looks first.
    async fn operate(&mut self) {
        let Some(&job) = self.random.choice(&self.mine) else { return };
        let verb = [Verb::Cancel, Verb::RetryNow, Verb::Rerun, Verb::Snooze][self.random.usize(..4)];
        let call = self.act((verb == Verb::Rerun).then_some(job));
        let operation = Operation::new(verb).delay(Duration::from_millis(200)).note(call.mark.clone());
        let operated = call.store.operate(job, &operation).await;
        let changed = matches!(operated, Ok(Operated::Done(_) | Operated::StopRequested));
        self.acted(call, outcome(&operated), changed);
    }

    /// Edits a job, once.
    async fn edit(&mut self, job: JobId) {
        let call = self.act(None);
        let edit =
            JobEdit { priority: Some(Priority::LAST), note: Some(call.mark.clone()), ..JobEdit::default() };
        let edited = call.store.edit_job(job, &edit).await;
        let changed = edited.is_ok();
        self.acted(call, outcome(&edited), changed);
    }

    /// Begins an action that is audited. `revived`: the job that has not ended any more by it.
    pub(super) fn act(&mut self, revived: Option<JobId>) -> Act {
        self.calls += 1;
        let mark = format!("{} {}", self.name, self.calls);
        let revived = revived.map(|job| job.to_string());
        let what = What::Act { mark: mark.clone(), changed: true, revived: revived.clone() };
        let begun = self.witness.begins(&what);
        let actor = Actor::new(self.name.clone()).and_then(|actor| actor.because(Some(&mark)));
        Act { store: self.store.acting_as(actor.expect("a valid actor")), begun, mark, revived }
    }

    /// Records how an action ended, and whether it changed something.
    pub(super) fn acted(&self, act: Act, outcome: Outcome, changed: bool) {
        let what = What::Act { mark: act.mark, changed, revived: act.revived };
        self.witness.ended(&act.begun, outcome, what);
    }
}

/// An audited action that has begun.
pub(super) struct Act {
    /// The store, acting for the caller with this reason.
    pub(super) store: Arc<dyn Store>,
    begun: Begun,
    /// A text that only this action has.
    pub(super) mark: String,
    revived: Option<String>,
}

/// Returns the outcome of a call. Without an answer, it is unknown.
pub(super) fn outcome<T>(answer: &Result<T, StoreError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Ok,
        Err(error) if error.is_transient() => Outcome::Unknown,
        Err(StoreError::Database { .. }) => Outcome::Unknown,
        Err(_) => Outcome::Failed,
    }
}

fn asked(jobs: &[NewJob], answers: &[JobId]) -> What {
    let asked = jobs.iter().enumerate().map(|(index, job)| AskedJob {
        id: job.id.to_string(),
        kind: job.kind.clone(),
        key: job.key.clone(),
        answer: answers.get(index).map(ToString::to_string),
    });
    What::Enqueue { jobs: asked.collect() }
}
