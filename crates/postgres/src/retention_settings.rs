//! Retention periods that operators have set.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::duration::whole_ms;
use milepost_core::port::{RetentionStore, StoreResult};
use milepost_core::retention::{Keep, Retained, RetentionPeriod};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;
use crate::session::Repeatable;
use crate::store::PostgresStore;

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn put_retention(&self, period: RetentionPeriod) -> StoreResult<()> {
        period.check()?;
        let query = sqlx::query(sql!("put_retention"))
            .bind(period.of.as_str())
            .bind(period.keep.period().map(whole_ms));
        let (query, action) = (Repeatable::of(query), AuditedAction::put_retention(period.of));
        let put = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        put.map(drop).map_err(|e| self.fail("put_retention", e))
    }

    async fn remove_retention(&self, of: Retained) -> StoreResult<bool> {
        let query = Repeatable::of(sqlx::query(sql!("remove_retention")).bind(of.as_str()));
        let action = AuditedAction::remove_retention(of);
        let removed = self.act(&self.inner.hot, &action, async |session| session.row(query).await).await;
        removed.map(|removed| removed.is_some()).map_err(|e| self.fail("remove_retention", e))
    }

    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("retention_settings"))).await;
        let stored = rows.and_then(|rows| rows.iter().filter_map(|row| stored(row).transpose()).collect());
        stored.map_err(|e| self.fail("stored_retention", e))
    }
}

/// Decodes a row; `None` if it is about something that only a newer version deletes. A period that cannot be read is an error: without it, too much
/// would be deleted.
fn stored(row: &PgRow) -> Decoded<Option<RetentionPeriod>> {
    let Ok(of) = row.try_get::<&str, _>(0)?.parse() else { return Ok(None) };
    let keep_ms: Option<i64> = row.try_get(1)?;
    let keep = keep_ms.map_or(Keep::Forever, |ms| Keep::For(Duration::from_millis(ms.unsigned_abs())));
    Ok(Some(RetentionPeriod { of, keep }))
}
