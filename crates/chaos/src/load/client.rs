//! A client process: enqueues jobs, emits events, and operates on jobs, each call until its outcome is known.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use milepost_core::audit::Actor;
use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::transition::Verb;
use milepost_postgres::WakeMode;
use milepost_testkit::home;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{EFFECT, FLAKY, GROUPS, PLAIN, ProcessArgs, QUEUE, RATED, until_parent_ends};
use crate::record::{AskedJob, Outcome, What};
use crate::witness::Witness;

/// The number of concurrent callers of a process.
const CALLERS: u64 = 4;
/// The longest pause between two calls, in milliseconds.
const PAUSE_MS_MAX: u64 = 60;
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
    let home = home::open(&args.store, WakeMode::Poll).await;
    let witness = Arc::new(Witness::create(&args.folder, &args.name)?);
    let stop = until_parent_ends();
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let caller = Caller {
            store: home.store(),
            witness: witness.clone(),
            name: format!("{}.{number}", args.name),
            random: Rng::with_seed(args.seed.wrapping_mul(CALLERS).wrapping_add(number)),
            calls: 0,
            mine: Vec::new(),
        };
        callers.spawn(caller.call_until(stop.clone()));
    }
    callers.join_all().await;
    Ok(())
}

/// One of the concurrent callers.
struct Caller {
    store: Arc<dyn Store>,
    witness: Arc<Witness>,
    name: String,
    random: Rng,
    calls: u64,
    /// Jobs that this caller has enqueued.
    mine: Vec<JobId>,
}

impl Caller {
    async fn call_until(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.random.u8(..10) {
                0..5 => self.enqueue().await,
                5..8 => self.emit().await,
                _ => self.operate().await,
            }
            tokio::time::sleep(Duration::from_millis(self.random.u64(..PAUSE_MS_MAX))).await;
        }
    }

    async fn enqueue(&mut self) {
        let jobs: Vec<NewJob> = (0..self.random.usize(1..6)).map(|_| self.job()).collect();
        loop {
            let begun = self.witness.begins(&asked(&jobs, &[]));
            let answer = self.store.enqueue_many(&jobs).await;
            let ids: Vec<JobId> = answer.iter().flatten().map(|enqueued| enqueued.job).collect();
            let outcome = outcome(&answer);
            self.witness.ended(&begun, outcome, asked(&jobs, &ids));
            if outcome != Outcome::Unknown {
                self.mine.extend(ids);
                return;
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }

    fn job(&mut self) -> NewJob {
        let kind = [EFFECT, PLAIN, FLAKY, RATED][self.random.usize(..4)];
        let job = NewJob::new(kind, &self.calls).expect("JSON").queue(QUEUE);
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
        loop {
            let begun = self.witness.begins(&what());
            let outcome = outcome(&self.store.emit(&event).await);
            self.witness.ended(&begun, outcome, what());
            if outcome != Outcome::Unknown {
                return;
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }

    /// Operates on one of its jobs, once: an operator who gets no answer looks first.
    async fn operate(&mut self) {
        let Some(&job) = self.random.choice(&self.mine) else { return };
        self.calls += 1;
        let mark = format!("{} {}", self.name, self.calls);
        let verb = [Verb::Cancel, Verb::RetryNow, Verb::Rerun, Verb::Snooze][self.random.usize(..4)];
        let begun = self.witness.begins(&What::Act { mark: mark.clone(), changed: true });
        let actor = Actor::new(self.name.clone()).and_then(|actor| actor.because(Some(&mark)));
        let store = self.store.acting_as(actor.expect("a valid actor"));
        let operation = Operation::new(verb).delay(Duration::from_millis(200)).note(mark.clone());
        let operated = store.operate(job, &operation).await;
        let changed = matches!(operated, Ok(Operated::Done(_) | Operated::StopRequested));
        self.witness.ended(&begun, outcome(&operated), What::Act { mark, changed });
    }
}

/// Returns the outcome of a call. Without an answer, it is unknown.
fn outcome<T>(answer: &Result<T, StoreError>) -> Outcome {
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
