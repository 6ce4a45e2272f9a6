//! Import of another store's contents.

use jiff_sqlx::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, RunToken};
use milepost_core::port::StoreResult;
use milepost_core::relocation::{
    Arrival, Marks, MoveError, MoveId, Page, Part, Position, Progress, Standing,
};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::import::import;
use crate::row::{self, Decoded, named};
use crate::session::{Query, Session};
use crate::store::PostgresStore;

fn begin_move(id: MoveId, from: &str) -> Query {
    let parts: Vec<&str> = Part::ALL.iter().map(|part| part.as_str()).collect();
    sqlx::query(sql!("move/begin_move")).bind(id.0).bind(from.to_owned()).bind(parts)
}

impl PostgresStore {
    /// Returns the import that is filling this store, or that has filled it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn arrival(&self) -> StoreResult<Option<Arrival>> {
        let found = self.inner.calm.row(sqlx::query(sql!("move/arrival"))).await;
        found.and_then(|row| row.as_ref().map(arrival).transpose()).map_err(|e| self.fail("arrival", e))
    }

    /// Returns the progress of each part of an import.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn arrived(&self, id: MoveId) -> StoreResult<Vec<Progress>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("move/arrival_parts")).bind(id.0)).await;
        rows.and_then(|rows| rows.iter().map(progress).collect()).map_err(|e| self.fail("arrived", e))
    }

    /// Starts filling this store with the contents of the store at `from`. From the commit on, all other changes to this
    /// store are refused.
    ///
    /// # Errors
    /// [`NotEmpty`](MoveError::NotEmpty) names what the store contains; nothing was changed.
    pub async fn begin_move(&self, id: MoveId, from: &str) -> StoreResult<()> {
        self.inner.calm.execute(begin_move(id, from)).await.map(drop).map_err(|e| self.fail("begin_move", e))
    }

    /// Checks that [`begin_move`](Self::begin_move) would accept this store, without a change.
    ///
    /// # Errors
    /// Those of [`begin_move`](Self::begin_move).
    pub async fn check_move(&self, id: MoveId, from: &str) -> StoreResult<()> {
        let check = async {
            let mut transaction = self.inner.calm.begin().await?;
            let begun = transaction.session().execute(begin_move(id, from)).await;
            transaction.end("rollback").await?;
            begun.map(drop)
        };
        check.await.map_err(|e| self.fail("begin_move", e))
    }

    /// Inserts a page in one transaction with the position that it reaches.
    ///
    /// # Errors
    /// [`NotUnderWay`](MoveError::NotUnderWay) when the import was abandoned or completed, [`Raced`](MoveError::Raced) when
    /// the part's position is not where the page begins. Nothing was changed.
    pub async fn bring(&self, id: MoveId, page: &Page) -> StoreResult<()> {
        let (part, rows) = (page.rows.part(), page.rows.len() as i64);
        let brought = self.inner.calm.atomically(async |session| {
            if let Err(refused) = enter(session, id, part, &page.after).await? {
                return Ok(Err(refused));
            }
            if rows > 0 {
                session.execute(import(&page.rows)).await?;
            }
            let reached = written(&page.reached)?;
            let reach = sqlx::query(sql!("move/advance_part")).bind(id.0).bind(part.as_str());
            session.execute(reach.bind(reached).bind(rows).bind(page.is_last)).await?;
            Ok(Ok(()))
        });
        brought.await.map_err(|e| self.fail("bring", e))?.map_err(StoreError::Move)
    }

    /// Completes an import whose parts have all arrived. From the commit on, the store accepts all changes again. `who` is
    /// recorded in the audit log.
    ///
    /// # Errors
    /// When no import is in progress, or when parts are missing.
    pub async fn complete_move(&self, id: MoveId, marks: &Marks, who: &str) -> StoreResult<()> {
        let query = sqlx::query(sql!("move/complete_move")).bind(id.0).bind(marks.worker_last).bind(who);
        self.inner.calm.execute(query).await.map(drop).map_err(|e| self.fail("complete_move", e))
    }

    /// Deletes the rows that the import in progress has inserted. Returns whether there was such an import.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn give_up_move(&self, id: MoveId) -> StoreResult<bool> {
        let given_up = self.inner.calm.row(sqlx::query(sql!("move/give_up_move")).bind(id.0)).await;
        given_up.and_then(row::value).map_err(|e| self.fail("give_up_move", e))
    }

    /// Updates the planner's statistics after an import, so that queries on the imported rows are planned well.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn analyze(&self) -> StoreResult<()> {
        let analyzed = self.inner.calm.run(async |session| session.script(sql!("move/analyze")).await);
        analyzed.await.map_err(|e| self.fail("analyze", e))
    }

    /// Returns the number of rows of each part.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count_parts(&self) -> StoreResult<Vec<(Part, u64)>> {
        let count = |row: &PgRow| Ok((named(row, "part")?, row.try_get::<i64, _>("rows")?.unsigned_abs()));
        let rows = self.inner.calm.rows(sqlx::query(sql!("move/counts"))).await;
        rows.and_then(|rows| rows.iter().map(count).collect()).map_err(|e| self.fail("count_parts", e))
    }

    /// Returns the states of up to `limit` jobs after the given one: current states for [`Part::Live`], final states for
    /// [`Part::Ended`].
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn standings(&self, part: Part, after: JobId, limit: u32) -> StoreResult<Vec<Standing>> {
        let sql =
            if part == Part::Ended { sql!("move/standings_ended") } else { sql!("move/standings_live") };
        let rows = self.inner.calm.rows(sqlx::query(sql).bind(after.0).bind(i64::from(limit))).await;
        rows.and_then(|rows| rows.iter().map(standing).collect()).map_err(|e| self.fail("standings", e))
    }
}

/// Allows the transaction to insert rows of a part, if the part's position is where the page begins.
async fn enter(
    session: &mut Session<'_>,
    id: MoveId,
    part: Part,
    after: &Position,
) -> Decoded<Result<(), MoveError>> {
    let lock = sqlx::query(sql!("move/lock_part")).bind(id.0).bind(part.as_str());
    let Some(found) = session.row(lock).await? else { return Ok(Err(MoveError::NotUnderWay(id))) };
    if position(&found)? != *after {
        return Ok(Err(MoveError::Raced { id, part }));
    }
    session.execute(sqlx::query(sql!("move/allow_writes")).bind(id.0)).await?;
    Ok(Ok(()))
}

fn arrival(row: &PgRow) -> Decoded<Arrival> {
    Ok(Arrival {
        id: MoveId(row.try_get("move_id")?),
        from: row.try_get("source")?,
        began_at: row.try_get::<Timestamp, _>("began_at")?.to_jiff(),
        completed_at: row::time(row, "completed_at")?,
    })
}

fn progress(row: &PgRow) -> Decoded<Progress> {
    Ok(Progress {
        part: named(row, "part")?,
        position: position(row)?,
        rows: row.try_get::<i64, _>("rows")?.unsigned_abs(),
        done: row.try_get("done")?,
    })
}

fn standing(row: &PgRow) -> Decoded<Standing> {
    Ok((JobId(row.try_get("id")?), named(row, "state")?, RunToken(row.try_get("token")?)))
}

fn position(row: &PgRow) -> Decoded<Position> {
    serde_json::from_str(row.try_get("position")?)
        .map_err(|e| sqlx::Error::ColumnDecode { index: "position".to_owned(), source: Box::new(e) })
}

fn written(position: &Position) -> Decoded<String> {
    serde_json::to_string(position).map_err(|e| sqlx::Error::Encode(Box::new(e)))
}
