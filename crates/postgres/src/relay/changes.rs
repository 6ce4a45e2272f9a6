//! State changes that are recorded as events, because a subscription selects them.

use std::time::Duration;

use milepost_core::event::Changes;
use milepost_core::sql;

use crate::row::{Decoded, value};
use crate::store::PostgresStore;

/// The kinds of changes that are recorded, each by a separate trigger.
const RECORDED: [&str; 2] = ["kind", "dag"];
/// Number of attempts to stop recording changes that no subscription selects any more, and the interval between them.
const TRIES: u32 = 10;
const TRY_AGAIN: Duration = Duration::from_millis(200);

impl PostgresStore {
    /// Registers the state changes that a subscription selects. Returns whether all selected changes are recorded now.
    pub(super) async fn want_changes(&self, subscription: &str, changes: &Changes) -> Decoded<bool> {
        let query = sqlx::query(sql!("relay/want_changes"))
            .bind(subscription.to_owned())
            .bind(changes.kinds.clone())
            .bind(changes.dags.clone());
        self.inner.hot.execute(query).await?;
        self.switch_recording().await
    }

    /// Stops recording changes that no subscription selects any more. If a long transaction holds the history, its trigger
    /// remains, which costs a little and emits no events.
    pub(super) async fn leave_changes(&self) -> Decoded<()> {
        for _ in 0..TRIES {
            if self.switch_recording().await? {
                return Ok(());
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
        tracing::warn!(
            "open transactions lock the history, so its trigger cannot be dropped; the next relay that starts tries again"
        );
        Ok(())
    }

    /// Records exactly the changes that subscriptions select; returns false if that was not completely possible now.
    async fn switch_recording(&self) -> Decoded<bool> {
        let mut all = true;
        for what in RECORDED {
            let query = sqlx::query(sql!("relay/switch_recording")).bind(what);
            all &= self.inner.hot.row(query).await.and_then(value::<bool>)?;
        }
        Ok(all)
    }
}
