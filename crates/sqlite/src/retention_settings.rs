//! Retention periods that operators have set.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::duration::whole_ms;
use milepost_core::port::{RetentionStore, StoreResult};
use milepost_core::retention::{Keep, Retained, RetentionPeriod};
use milepost_core::sql;
use rusqlite::Row;

use crate::command::Hint;
use crate::store::SqliteStore;

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn put_retention(&self, period: RetentionPeriod) -> StoreResult<()> {
        period.check()?;
        let keep_ms = period.keep.period().map(whole_ms);
        let put = move |tx: &rusqlite::Transaction<'_>| {
            tx.prepare_cached(sql!("put_retention"))?.execute((period.of.as_str(), keep_ms))?;
            Ok(())
        };
        self.act("put_retention", Hint::NONE, AuditedAction::put_retention(period.of), put).await
    }

    async fn remove_retention(&self, of: Retained) -> StoreResult<bool> {
        let remove = move |tx: &rusqlite::Transaction<'_>| {
            Ok(tx.prepare_cached(sql!("remove_retention"))?.execute([of.as_str()])? == 1)
        };
        self.act("remove_retention", Hint::NONE, AuditedAction::remove_retention(of), remove).await
    }

    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>> {
        self.read("stored_retention", |conn| {
            let mut statement = conn.prepare_cached(sql!("retention_settings"))?;
            Ok(statement
                .query_map((), stored)?
                .filter_map(Result::transpose)
                .collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

/// Decodes a row; `None` if it is about something that only a newer version deletes. A period that cannot be read is an error: without it, too much
/// would be deleted.
fn stored(row: &Row<'_>) -> rusqlite::Result<Option<RetentionPeriod>> {
    let Ok(of) = row.get_ref(0)?.as_str()?.parse() else { return Ok(None) };
    let keep_ms: Option<i64> = row.get(1)?;
    let keep = keep_ms.map_or(Keep::Forever, |ms| Keep::For(Duration::from_millis(ms.unsigned_abs())));
    Ok(Some(RetentionPeriod { of, keep }))
}
