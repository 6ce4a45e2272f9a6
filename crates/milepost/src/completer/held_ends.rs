//! Ends of runs that open transactions of other programs hold. They are tried again and again, apart from the ends of other runs.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::Finish;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{acknowledge, tell};
use crate::end_channel::BATCH_MAX;
use crate::shared::Shared;

/// The shortest and the longest pause between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// With this many ends, it takes no more: the worker's ends wait then, and so do its claims.
const ENDS_MAX: usize = 4 * BATCH_MAX;

/// Runs until all senders are dropped and every end was stored, or the worker gives up: then the leases of the rest expire.
pub(crate) async fn run(shared: Arc<Shared>, mut arriving: mpsc::Receiver<Vec<Finish>>) {
    let (mut held, mut pause, mut closed) = (Vec::new(), PAUSE_MIN, false);
    while !(closed && held.is_empty()) {
        tokio::select! {
            more = arriving.recv(), if !closed && held.len() < ENDS_MAX => match more {
                Some(more) => {
                    tracing::warn!(ends = more.len(), job = %more[0].run.job,
                        "an open transaction holds jobs whose runs have ended; their ends are stored when it has ended");
                    held.extend(more);
                    pause = PAUSE_MIN;
                }
                None => closed = true,
            },
            () = sleep(pause), if !held.is_empty() => {
                held = store(&shared, held).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            () = shared.give_up.cancelled() => return,
        }
    }
}

/// Tries to store the ends. Returns those that are still held.
async fn store(shared: &Arc<Shared>, mut ends: Vec<Finish>) -> Vec<Finish> {
    let mut held = Vec::new();
    while !ends.is_empty() {
        let rest = ends.split_off(ends.len().min(BATCH_MAX));
        match shared.store.finish_many(shared.worker, &ends).await {
            Ok(answers) => held.extend(acknowledge(shared, ends, &answers)),
            Err(StoreError::Refused { .. }) => held.extend(tell(shared, ends).await),
            Err(error) => {
                tracing::warn!(
                    error = error.chain(),
                    ends = ends.len(),
                    "the ends of runs could not be stored; trying again"
                );
                held.append(&mut ends);
            }
        }
        ends = rest;
    }
    held
}
