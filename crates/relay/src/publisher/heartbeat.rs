//! Renewal of a publisher's lease while pages are published.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Shared;

/// Renews the lease three times per lease duration until `ended` is cancelled.
pub(super) async fn keep(shared: Arc<Shared>, ended: CancellationToken) {
    let every = shared.options.lease / 3;
    while ended.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
        let asked_at = Instant::now();
        if *shared.held_until.borrow() <= asked_at {
            // The lease has expired, so other publishers may own the slots. The next balancing acquires a new lease.
            continue;
        }
        match shared.store.renew(&shared.publisher).await {
            Ok(true) => shared.held_from(asked_at),
            Ok(false) => shared.lost(),
            Err(error) => {
                let subscription = &shared.publisher.subscription;
                tracing::warn!(subscription, %error, "the lease of the slots could not be renewed");
            }
        }
    }
}
