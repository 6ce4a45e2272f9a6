//! Upkeep of groups: slots that are free while somebody waits.

use milepost_core::port::StoreResult;

use crate::statement;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(crate) async fn fill_free_groups(&self) -> StoreResult<u64> {
        let fail = |e| self.fail("fill_groups", e);
        let groups: Vec<String> = sqlx::query_scalar(statement::WAITING_GROUPS)
            .fetch_all(&self.inner.hot)
            .await
            .map_err(fail)?;
        if groups.is_empty() {
            return Ok(0);
        }
        let released: i64 = sqlx::query_scalar(statement::HAND_OVER)
            .bind(groups)
            .fetch_one(&self.inner.hot)
            .await
            .map_err(fail)?;
        Ok(released.unsigned_abs())
    }
}
