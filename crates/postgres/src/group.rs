//! Upkeep of groups: slots that are free while somebody waits, and tokens that have come back.

use std::time::Duration;

use milepost_core::port::StoreResult;

use crate::statement;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn fill_free_groups(&self) -> StoreResult<u64> {
        let fail = |e| self.fail("fill_groups", e);
        let groups: Vec<String> =
            sqlx::query_scalar(statement::WAITING_GROUPS).fetch_all(&self.inner.hot).await.map_err(fail)?;
        let mut released = 0;
        if !groups.is_empty() {
            released = sqlx::query_scalar(statement::HAND_OVER)
                .bind(groups)
                .fetch_one(&self.inner.hot)
                .await
                .map_err(fail)?;
        }
        self.pace().await.map_err(fail)?;
        Ok(i64::unsigned_abs(released))
    }

    /// Releases what the rates of groups allow. Answers how soon to look again, unless something is noted first.
    pub(crate) async fn pace(&self) -> Result<Option<Duration>, sqlx::Error> {
        let again_ms: Option<i64> = sqlx::query_scalar(statement::PACE).fetch_one(&self.inner.hot).await?;
        Ok(again_ms.map(|ms| Duration::from_millis(ms.unsigned_abs())))
    }
}
