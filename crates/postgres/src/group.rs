//! Maintenance of groups: free slots while jobs wait, and tokens that have been refilled.

use std::time::{Duration, Instant};

use milepost_core::port::StoreResult;
use milepost_core::sql;

use crate::row::{self, Decoded};
use crate::session::Session;
use crate::store::PostgresStore;

/// Maximum time for which one call releases jobs.
const AT_A_STRETCH: Duration = Duration::from_millis(500);

impl PostgresStore {
    pub(crate) async fn fill_free_groups(&self) -> StoreResult<u64> {
        let fail = |e| self.fail("fill_groups", e);
        // First, because the scan of all waiting groups may take long.
        self.pace().await.map_err(fail)?;
        let released = self.inner.hot.run(hand_over).await.map_err(fail)?;
        Ok(i64::unsigned_abs(released))
    }

    /// Releases the jobs that are due and that the rates of their groups allow. Returns the time until the next call is
    /// useful, unless a change is noted before.
    pub(crate) async fn pace(&self) -> Decoded<Option<Duration>> {
        let began = Instant::now();
        loop {
            let again_ms = self.inner.hot.row(sqlx::query(sql!("pace"))).await;
            let again_ms: Option<i64> = again_ms.and_then(row::value)?;
            // Many jobs may be due at the same time.
            if again_ms != Some(0) || began.elapsed() >= AT_A_STRETCH {
                return Ok(again_ms.map(|ms| Duration::from_millis(ms.unsigned_abs())));
            }
        }
    }
}

async fn hand_over(session: &mut Session<'_>) -> Decoded<i64> {
    let groups = session.rows(sqlx::query(sql!("waiting_groups"))).await;
    let groups: Vec<String> = groups.and_then(row::values)?;
    if groups.is_empty() {
        return Ok(0);
    }
    session.row(sqlx::query(sql!("hand_over")).bind(groups)).await.and_then(row::value)
}
