//! Batch work that any worker performs: it evaluates tasks that became due, and counts ended tasks with too many successors for one
//! transaction.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::port::StoreResult;

use crate::shared::Shared;

/// The interval between two checks without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until the registration ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = advance(&shared).await {
            tracing::warn!(error = error.chain(), "batches could not be advanced; trying again");
        }
        // Jitter, so that workers do not check at the same time.
        let look_in = LOOK_EVERY.mul_f64(0.75 + 0.5 * fastrand::f64());
        let _ = tokio::time::timeout(look_in, shared.advance_now.notified()).await;
    }
}

/// Processes all deferred work page by page; returns whether there was any.
pub(crate) async fn advance(shared: &Shared) -> StoreResult<bool> {
    let mut advanced = false;
    while shared.store.advance_batches().await? > 0 {
        advanced = true;
        shared.coordinator.made_ready();
    }
    Ok(advanced)
}
