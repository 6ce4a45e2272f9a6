//! What any worker does for all batches: works out tasks that became due outside of a worker, and counts ends that had too
//! many successors for one transaction.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::port::StoreResult;

use crate::incarnation::Shared;

/// How often to look when nobody hints.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until the incarnation ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = advance(&shared).await {
            tracing::warn!(error = error.chain(), "batches could not be advanced; trying again");
        }
        // Spread, so that many workers do not all look at the same moment.
        let look_in = LOOK_EVERY.mul_f64(0.75 + 0.5 * fastrand::f64());
        let _ = tokio::time::timeout(look_in, shared.advance_now.notified()).await;
    }
}

/// Does all that is left to be done now, page by page; answers whether there was any.
pub(crate) async fn advance(shared: &Shared) -> StoreResult<bool> {
    let mut advanced = false;
    while shared.store.advance_batches().await? > 0 {
        advanced = true;
        shared.coordinator.made_ready();
    }
    Ok(advanced)
}
