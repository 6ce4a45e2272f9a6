//! Numbers of runs that started and ended, counted by the server.

use milepost_core::feed::{Activity, Counted};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::position::Position;
use crate::row::{Decoded, named};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Returns the activity in the window from a position to now.
    pub(super) async fn count_activity(&self, after: &Position, lengths: u32) -> StoreResult<Activity> {
        let query = sqlx::query(sql!("feed/activity"))
            .bind(after.seen.text.clone())
            .bind(i64::from(lengths))
            .bind(after.epoch.clone());
        let rows = self.inner.intake.rows(query).await.map_err(|e| self.fail("activity", e))?;
        let upto = self.window_end("activity", &rows)?;
        let counted = rows.iter().filter_map(|row| counted(row).transpose()).collect::<Decoded<Vec<_>>>();
        let counted = counted.map_err(|e| self.fail("activity", e))?;
        Ok(Activity { counted, end: after.behind(&upto) })
    }
}

/// Decodes a row; `None` if it only contains the end of the window.
fn counted(row: &PgRow) -> Decoded<Option<Counted>> {
    let Some(at_s) = row.try_get("at_s")? else { return Ok(None) };
    let took_ms: Option<Vec<i64>> = row.try_get("took_ms")?;
    Ok(Some(Counted {
        at_s,
        verb: named(row, "verb")?,
        times: row.try_get::<i64, _>("times")?.cast_unsigned(),
        took_ms: took_ms.unwrap_or_default().into_iter().map(i64::cast_unsigned).collect(),
    }))
}
