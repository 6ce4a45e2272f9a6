//! Check for the waker of relays: whether the event log has grown.

use milepost_core::sql;
use std::time::Duration;

use sqlx::Row;

use super::{Handshake, Watch};
use crate::store::PostgresStore;

/// Checks the last position drawn from the log's sequence. The transaction that drew it may not have committed yet, so awake
/// relays check again.
pub(super) struct LogWatch {
    store: PostgresStore,
    drawn: Option<i64>,
    publishers: i64,
}

impl Watch for LogWatch {
    const LOOK_EVERY: Duration = Duration::from_millis(2);
    const BLIND: bool = true;
    const HANDSHAKE: Handshake = Handshake { channel: "milepost_log", sleep: 4, waker: 5 };

    async fn due_in(&mut self) -> Result<Option<Duration>, sqlx::Error> {
        let row = self.store.inner.hot.row(sqlx::query(sql!("relay/last_pos"))).await?;
        let row = row.ok_or(sqlx::Error::RowNotFound)?;
        self.publishers = row.try_get("publishers")?;
        let drawn = Some(row.try_get("drawn")?);
        let grows = drawn != std::mem::replace(&mut self.drawn, drawn);
        Ok(grows.then_some(Duration::ZERO))
    }

    fn look_took(&self) -> Duration {
        // A check reads one row, however large the log is.
        Duration::ZERO
    }

    fn has_others(&self) -> bool {
        self.publishers > 1
    }

    fn again_in(&self) -> Option<Duration> {
        None
    }
}

impl LogWatch {
    pub(super) fn new(store: PostgresStore) -> Self {
        Self { store, drawn: None, publishers: 0 }
    }
}
