//! Renews the worker's lease and receives stop requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;

use crate::shared::Shared;

/// The number of renewals in one lease.
const BEATS_PER_LEASE: u32 = 4;
/// The wait after a stop request for a run that is not in hand yet, because the answer to its claim is still under way.
const EARLY_STOP: Duration = Duration::from_secs(1);

/// Runs until the registration ends, which was requested at `registered_at` and began the lease. If the lease cannot be renewed in time, all
/// runs in hand are dropped, because another worker may have their jobs by then.
pub(crate) async fn run(shared: Arc<Shared>, registered_at: Instant) {
    let lease = shared.options.lease;
    let beat = lease / BEATS_PER_LEASE;
    let mut valid_until = registered_at + lease;
    let mut wait = beat.saturating_sub(registered_at.elapsed());
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.beat_now.notified() => {}
            () = shared.ended.cancelled() => return,
        }
        let sent_at = Instant::now();
        let left = valid_until.saturating_duration_since(sent_at);
        // A broken connection must not use up the lease: the next attempt uses another one.
        let patience = left.min(beat);
        let answer = tokio::time::timeout(patience, shared.store.heartbeat(shared.worker)).await;
        wait = beat;
        match answer {
            Ok(Ok(heartbeat)) => {
                valid_until = sent_at + lease;
                for (run, verb) in heartbeat.stops {
                    if !shared.runs.stop(run, verb) {
                        wait = wait.min(EARLY_STOP);
                    }
                }
            }
            Ok(Err(StoreError::WorkerLost(_))) => return lose(&shared, "the store declared the worker dead"),
            Ok(Err(error)) => {
                tracing::warn!(worker = %shared.worker, error = error.chain(), "the lease could not be renewed; trying again");
                wait = beat / 5;
            }
            Err(_) => {
                tracing::warn!(worker = %shared.worker, ?patience, "the store did not answer a heartbeat; trying again");
                wait = beat / 5;
            }
        }
        if Instant::now() >= valid_until {
            return lose(&shared, "it could not be renewed in time");
        }
    }
}

fn lose(shared: &Shared, why: &str) {
    tracing::error!(worker = %shared.worker, handlers = shared.runs.handlers().len(),
        "the lease is lost: {why}; stopping all running jobs and registering again");
    shared.lost.cancel();
}
