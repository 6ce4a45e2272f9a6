//! Feed of changes, read by windows between snapshots in the way that `docs/adr/0017-reading-the-log.md` describes for the
//! log: a window contains what a later snapshot sees and an earlier one does not. A long transaction delays only its own
//! changes.

mod activity;
mod position;

use async_trait::async_trait;
use milepost_core::feed::{
    Activity, BatchChange, CHANGES_BEHIND_MAX, Change, FeedPage, FeedPosition, InvalidFeed, JobChange,
};
use milepost_core::ident::{BatchId, JobId, WorkerId};
use milepost_core::port::{FeedStore, StoreResult};
use milepost_core::sql;
use sqlx::postgres::PgRow;
use sqlx::{Row, ValueRef};

pub(crate) use self::position::Position;
use self::position::{HistoryKind, Within};
use crate::row::{self, Decoded, count, named};
use crate::store::PostgresStore;

#[async_trait]
impl FeedStore for PostgresStore {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        let row = self.inner.calm.row(sqlx::query(sql!("feed/end"))).await;
        row.and_then(|row| end(&row.ok_or(sqlx::Error::RowNotFound)?)).map_err(|e| self.fail("feed_end", e))
    }

    async fn feed(
        &self,
        position: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        let after = Position::parse(position)?;
        let upto = upto.map(Position::parse).transpose()?;
        if let Some(upto) = &upto {
            self.check_reach(&after, upto).await?;
            if !after.is_behind(&upto.seen) {
                return Ok(FeedPage { changes: Vec::new(), end: position.clone(), more: false });
            }
        }
        let upto = upto.map(|upto| upto.seen.text);
        let mut page = Reading { upto, after, changes: Vec::new(), limit };
        page.read(self).await?;
        Ok(page.end())
    }

    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity> {
        self.count_activity(&Position::parse(after)?, lengths).await
    }
}

fn end(row: &PgRow) -> Decoded<FeedPosition> {
    let epoch: String = row.try_get("epoch")?;
    let seen: String = row.try_get("seen")?;
    Ok(FeedPosition::new(format!("{epoch}/{seen}")))
}

impl PostgresStore {
    /// Returns the end of the window that these rows are in.
    ///
    /// # Errors
    /// The epoch of the position has ended, or the position is beyond what the server has reached.
    pub(crate) fn window_end(&self, verb: &'static str, rows: &[PgRow]) -> StoreResult<String> {
        let Some(row) = rows.first() else { return Err(InvalidFeed::Foreign.into()) };
        let window = row.try_get("upto").and_then(|upto| Ok((upto, row.try_get("forward")?)));
        match window.map_err(|e| self.fail(verb, e))? {
            (upto, true) => Ok(upto),
            (_, false) => Err(InvalidFeed::Foreign.into()),
        }
    }

    /// Checks whether a watcher can continue from a position that a client sent.
    async fn check_reach(&self, after: &Position, upto: &Position) -> StoreResult<()> {
        let query = sqlx::query(sql!("feed/behind"))
            .bind(after.seen.text.clone())
            .bind(upto.seen.text.clone())
            .bind(i64::from(CHANGES_BEHIND_MAX) + 1);
        let row = self.inner.calm.row(query).await;
        let found = row.and_then(|row| {
            let row = row.ok_or(sqlx::Error::RowNotFound)?;
            let epoch: String = row.try_get("epoch")?;
            Ok((epoch, row.try_get::<bool, _>("been_there")?, row.try_get::<i64, _>("changes")?))
        });
        let (epoch, been_there, changes) = found.map_err(|e| self.fail("feed", e))?;
        if epoch != after.epoch || !been_there {
            return Err(InvalidFeed::Foreign.into());
        }
        if changes > i64::from(CHANGES_BEHIND_MAX) {
            return Err(InvalidFeed::TooFarBehind.into());
        }
        Ok(())
    }
}

/// The state of a page while it is read.
struct Reading {
    after: Position,
    /// The snapshot at which to stop; `None`: now.
    upto: Option<String>,
    changes: Vec<(HistoryKind, i64, Change)>,
    limit: u32,
}

impl Reading {
    async fn read(&mut self, store: &PostgresStore) -> StoreResult<()> {
        let (upto, part, pos) = match &self.after.within {
            Some(Within { upto, part, pos }) => (Some(upto.text.clone()), *part, *pos),
            None => (self.upto.clone(), HistoryKind::Jobs, 0),
        };
        let upto = match (part, upto) {
            (HistoryKind::Batches, Some(upto)) => upto,
            (_, upto) => self.read_jobs(store, upto, pos).await?,
        };
        let is_new = upto != self.after.seen.text;
        if is_new && !self.is_full() {
            let pos = if part == HistoryKind::Batches { pos } else { 0 };
            self.read_batches(store, &upto, pos).await?;
        }
        self.upto = Some(upto);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= self.limit as usize
    }

    /// Returns the end of the window.
    async fn read_jobs(
        &mut self,
        store: &PostgresStore,
        upto: Option<String>,
        pos: i64,
    ) -> StoreResult<String> {
        let query = sqlx::query(sql!("feed/jobs"))
            .bind(self.after.seen.text.clone())
            .bind(upto)
            .bind(pos)
            .bind(i64::from(self.limit))
            .bind(self.after.epoch.clone());
        let rows = store.inner.intake.rows(query).await.map_err(|e| store.fail("feed", e))?;
        let decoded = rows.iter().filter_map(|row| job_change(row).transpose()).collect::<Decoded<Vec<_>>>();
        let found = decoded.map_err(|e| store.fail("feed", e))?;
        self.changes
            .extend(found.into_iter().map(|change| (HistoryKind::Jobs, change.pos, Change::Job(change))));
        store.window_end("feed", &rows)
    }

    async fn read_batches(&mut self, store: &PostgresStore, upto: &str, pos: i64) -> StoreResult<()> {
        let left = self.limit as usize - self.changes.len();
        let query = sqlx::query(sql!("feed/batches"))
            .bind(self.after.seen.text.clone())
            .bind(upto.to_owned())
            .bind(pos)
            .bind(i64::try_from(left).unwrap_or(i64::MAX))
            .bind(self.after.epoch.clone());
        let rows = store.inner.intake.rows(query).await;
        let found = rows.and_then(|rows| rows.iter().map(batch_change).collect::<Decoded<Vec<_>>>());
        let found = found.map_err(|e| store.fail("feed", e))?;
        self.changes.extend(
            found.into_iter().map(|change| (HistoryKind::Batches, change.pos, Change::Batch(change))),
        );
        Ok(())
    }

    fn end(self) -> FeedPage {
        let more = self.is_full();
        let upto = self.upto.unwrap_or_default();
        let mut changes: Vec<(FeedPosition, Change)> = self
            .changes
            .into_iter()
            .map(|(part, pos, change)| (self.after.inside(&upto, part, pos), change))
            .collect();
        let end = match changes.last_mut() {
            Some((last, _)) if more => last.clone(),
            last => {
                let end = self.after.behind(&upto);
                if let Some((last, _)) = last {
                    *last = end.clone();
                }
                end
            }
        };
        FeedPage { changes, end, more }
    }
}

/// Decodes a row; `None` if it only contains the end of the window.
fn job_change(row: &PgRow) -> Decoded<Option<JobChange>> {
    let Some(pos) = row.try_get("pos")? else { return Ok(None) };
    Ok(Some(JobChange {
        pos,
        job: JobId(row.try_get("job_id")?),
        kind: row.try_get("kind")?,
        queue: row.try_get("queue")?,
        batch: row.try_get::<Option<uuid::Uuid>, _>("batch_id")?.map(BatchId),
        at: row.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff(),
        verb: named(row, "verb")?,
        from: if row.try_get_raw("from_state")?.is_null() { None } else { Some(named(row, "from_state")?) },
        to: named(row, "to_state")?,
        attempt: count(row, "attempt")?,
        worker: row.try_get::<Option<i32>, _>("worker_id")?.map(WorkerId),
        ready_at: row::time(row, "ready_at")?,
        error_code: row.try_get("error_code")?,
    }))
}

fn batch_change(row: &PgRow) -> Decoded<BatchChange> {
    Ok(BatchChange {
        pos: row.try_get("pos")?,
        batch: BatchId(row.try_get("batch_id")?),
        dag: row.try_get("dag")?,
        task: row.try_get::<Option<i32>, _>("task")?.map(i32::cast_unsigned),
        at: row.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff(),
        verb: named(row, "verb")?,
        from: row.try_get("from_state")?,
        to: row.try_get("to_state")?,
    })
}
