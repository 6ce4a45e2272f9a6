//! Stores the ends of runs: many at a time, retrying until the store answers. Those that an open transaction holds do not delay the others:
//! [`held_ends`] stores them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Failure, Finish, Finished};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::end_channel::BATCH_MAX;
use crate::outcome::NOT_COMMITTED;
use crate::shared::Shared;

mod held_ends;

/// The most ends in one call if some are tasks of batches. Their consequences are applied in the same transaction, and other calls with
/// ends of tasks wait for it only if they have common successors.
const TASKS_MAX: usize = 250;
/// A batch at least this large is sent without waiting for more.
const BATCH_READY: usize = 250;
/// How long a small batch waits for more.
const LINGER: Duration = Duration::from_millis(2);
/// The maximum number of concurrent calls.
const IN_FLIGHT_MAX: usize = 3;
/// The longest wait between attempts while the store does not answer.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Runs until all senders are dropped and every end was sent.
pub(crate) async fn run(shared: Arc<Shared>, mut ends: mpsc::Receiver<Finish>) {
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let (held, arriving) = mpsc::channel(IN_FLIGHT_MAX);
    let storing_held = AbortOnDropHandle::new(tokio::spawn(held_ends::run(shared.clone(), arriving)));
    let mut rest = Vec::new();
    loop {
        let mut batch = std::mem::take(&mut rest);
        if batch.is_empty() && ends.recv_many(&mut batch, BATCH_MAX).await == 0 {
            break;
        }
        // More ends can arrive while it waits for a free place.
        let Ok(place) = in_flight.clone().acquire_owned().await else {
            break;
        };
        // If no other handler runs, no more ends arrive soon.
        if batch.len() < BATCH_READY && shared.runs.len() > batch.len() {
            tokio::time::sleep(LINGER).await;
        }
        while batch.len() < BATCH_MAX {
            let Ok(finish) = ends.try_recv() else { break };
            batch.push(finish);
        }
        if batch.len() > TASKS_MAX && batch.iter().any(|finish| finish.task) {
            // Tasks that were created together are sent together, because they have common successors.
            batch.sort_unstable_by_key(|finish| finish.run.job);
            rest = batch.split_off(TASKS_MAX);
        }
        let (shared, held) = (shared.clone(), held.clone());
        tokio::spawn(async move {
            let rest = tell(&shared, batch).await;
            if !rest.is_empty() {
                // The receiver is gone if the worker does not wait any more.
                let _ = held.send(rest).await;
            }
            drop(place);
        });
    }
    drop(held);
    // All places are free, so every end was sent.
    let _ = in_flight.acquire_many(IN_FLIGHT_MAX as u32).await;
    let _ = storing_held.await;
}

/// Sends a batch until the store accepts it. If the store refuses its values, each half is sent separately, so that one end that cannot be
/// stored does not delay the others. Returns the ends that an open transaction holds.
fn tell(shared: &Arc<Shared>, batch: Vec<Finish>) -> BoxFuture<'_, Vec<Finish>> {
    async move {
        let mut wait = Duration::from_millis(50);
        loop {
            let error = match shared.store.finish_many(shared.worker, &batch).await {
                Ok(answers) => return acknowledge(shared, batch, &answers),
                Err(error) => error,
            };
            if matches!(error, StoreError::Refused { .. }) && !is_last_resort(&batch) {
                return refused(shared, batch, &error).await;
            }
            let ends = batch.len();
            if error.is_transient() {
                tracing::warn!(
                    error = error.chain(),
                    ends,
                    "the ends of runs could not be stored; trying again"
                );
            } else {
                tracing::error!(
                    error = error.chain(),
                    ends,
                    "the store rejected the ends of runs; trying again"
                );
            }
            if shared.give_up.is_cancelled() {
                return Vec::new();
            }
            tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
            wait = (wait * 2).min(RETRY_WAIT_MAX);
        }
    }
    .boxed()
}

/// The error code of a run whose end cannot be stored.
const UNSTORABLE: &str = "unstorable";

/// Returns whether the batch cannot be simplified further.
fn is_last_resort(batch: &[Finish]) -> bool {
    matches!(batch, [Finish { end: End::Fail { failure }, .. }] if failure.code == UNSTORABLE)
}

async fn refused(shared: &Arc<Shared>, mut batch: Vec<Finish>, error: &StoreError) -> Vec<Finish> {
    if batch.len() > 1 {
        let rest = batch.split_off(batch.len() / 2);
        let mut held = tell(shared, batch).await;
        held.extend(tell(shared, rest).await);
        return held;
    }
    let Some(finish) = batch.pop() else { return batch };
    tracing::error!(job = %finish.run.job, error = error.chain(), "the store rejected the end of a run");
    let failure = Failure { code: UNSTORABLE.to_owned(), message: error.chain() };
    tell(shared, vec![Finish { end: End::Fail { failure }, ..finish }]).await
}

/// Releases the runs whose ends were stored or refused. Returns those that are held.
fn acknowledge(shared: &Shared, batch: Vec<Finish>, answers: &[Finished]) -> Vec<Finish> {
    let stats = &shared.stats;
    let mut answers = answers.iter();
    let (held, batch): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|finish| (finish, answers.next().copied().unwrap_or(Finished::Held)))
        .partition(|(_, answer)| *answer == Finished::Held);
    for (finish, answer) in &batch {
        match answer {
            Finished::Accepted => stats.count_end(&finish.end),
            Finished::Repeated => stats.repeated.add(1),
            // The handler completed the job in its own transaction; this end only checked that.
            Finished::Fenced if is_check(&finish.end) => stats.succeeded.add(1),
            Finished::Fenced => {
                stats.fenced.add(1);
                tracing::warn!(job = %finish.run.job, token = %finish.run.token, end = %finish.end.verb(),
                    "fenced: the job had left this run before it ended; nothing was changed");
            }
            Finished::Held => {}
        }
    }
    let batch: Vec<Finish> = batch.into_iter().map(|(finish, _)| finish).collect();
    if batch.iter().any(makes_ready) {
        shared.coordinator.made_ready();
    }
    if batch.iter().any(|finish| finish.task) {
        shared.ready.notify_one();
    }
    if !batch.is_empty() {
        stats.acknowledged.add(batch.len());
        stats.end_jobs.add(batch.len() as f64);
    }
    shared.runs.land(batch.iter().map(|finish| finish.run));
    held.into_iter().map(|(finish, _)| finish).collect()
}

/// Returns whether this end makes a job ready immediately: the same job, or the next one of its group.
fn makes_ready(finish: &Finish) -> bool {
    finish.grouped
        || finish.task
        || matches!(&finish.end, End::Yield { delay, .. } | End::Retry { delay, .. } if delay.is_zero())
}

fn is_check(end: &End) -> bool {
    matches!(end, End::Retry { failure, .. } | End::Fail { failure } if failure.code == NOT_COMMITTED)
}
