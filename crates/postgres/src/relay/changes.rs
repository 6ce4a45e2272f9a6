//! Which state changes are recorded as events: those that some subscription wants.

use std::time::Duration;

use milepost_core::event::Changes;

use crate::row::{Decoded, value};
use crate::statement;
use crate::store::PostgresStore;

/// What is recorded, each by a trigger of its own.
const RECORDED: [&str; 2] = ["kind", "dag"];
/// How often what nobody wants any more is tried to be left alone, and how long after one another.
const TRIES: u32 = 10;
const TRY_AGAIN: Duration = Duration::from_millis(200);

impl PostgresStore {
    /// Answers whether all is recorded that somebody wants.
    pub(super) async fn want_changes(&self, subscription: &str, changes: &Changes) -> Decoded<bool> {
        let query = sqlx::query(statement::RELAY_WANT_CHANGES)
            .bind(subscription.to_owned())
            .bind(changes.kinds.clone())
            .bind(changes.dags.clone());
        self.inner.hot.execute(query).await?;
        self.switch_recording().await
    }

    /// Leaves what nobody wants any more alone. What stays recorded, since a transaction holds the history for long, costs a
    /// little and makes no events.
    pub(super) async fn leave_changes(&self) -> Decoded<()> {
        for _ in 0..TRIES {
            if self.switch_recording().await? {
                return Ok(());
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
        tracing::warn!(
            "transactions that hold the history keep its trigger from being dropped; the next relay that starts tries again"
        );
        Ok(())
    }

    /// Records what somebody wants and nothing else; false: not all of it was possible now.
    async fn switch_recording(&self) -> Decoded<bool> {
        let mut all = true;
        for what in RECORDED {
            let query = sqlx::query(statement::RELAY_SWITCH_RECORDING).bind(what);
            all &= self.inner.hot.row(query).await.and_then(value::<bool>)?;
        }
        Ok(all)
    }
}
