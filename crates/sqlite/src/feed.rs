//! The feed of state changes. Positions are in commit order, so the highest position that a reader has seen identifies all changes before
//! it.

use async_trait::async_trait;
use milepost_core::error::StoreError;
use milepost_core::feed::{
    Activity, BatchChange, CHANGES_BEHIND_MAX, Change, Counted, FeedPage, FeedPosition, InvalidFeed,
    JobChange,
};
use milepost_core::port::{FeedStore, StoreResult};
use milepost_core::sql;
use rusqlite::{Connection, Row};

use crate::error::Failure;
use crate::row;
use crate::store::SqliteStore;

#[async_trait]
impl FeedStore for SqliteStore {
    async fn feed_end(&self) -> StoreResult<FeedPosition> {
        self.read("feed_end", |conn| Ok(Position::end(conn)?.position())).await
    }

    async fn feed(
        &self,
        after: &FeedPosition,
        upto: Option<&FeedPosition>,
        limit: u32,
    ) -> StoreResult<FeedPage> {
        let after = Position::parse(after)?;
        let upto = upto.map(Position::parse).transpose()?;
        if upto.as_ref().is_some_and(|upto| after.is_far_behind(upto)) {
            return Err(InvalidFeed::TooFarBehind.into());
        }
        self.read("feed", move |conn| read(conn, after, upto, limit)).await
    }

    async fn activity(&self, after: &FeedPosition, lengths: u32) -> StoreResult<Activity> {
        let after = Position::parse(after)?;
        self.read("activity", move |conn| activity(conn, after, lengths)).await
    }
}

/// The last positions seen: `s4711.12` of the histories of jobs and of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    jobs: i64,
    batches: i64,
}

impl Position {
    fn parse(position: &FeedPosition) -> Result<Self, InvalidFeed> {
        let parts = position.as_str().strip_prefix('s').and_then(|rest| rest.split_once('.'));
        let read = |text: &str| text.parse().ok().filter(|&pos: &i64| pos >= 0);
        match parts.map(|(jobs, batches)| (read(jobs), read(batches))) {
            Some((Some(jobs), Some(batches))) => Ok(Self { jobs, batches }),
            _ => Err(InvalidFeed::NotAPosition),
        }
    }

    fn end(conn: &Connection) -> rusqlite::Result<Self> {
        conn.prepare_cached(sql!("feed/end"))?
            .query_row((), |row| Ok(Self { jobs: row.get(0)?, batches: row.get(1)? }))
    }

    fn position(self) -> FeedPosition {
        FeedPosition::new(format!("s{}.{}", self.jobs, self.batches))
    }

    fn is_far_behind(self, upto: &Self) -> bool {
        upto.jobs.saturating_sub(self.jobs) > i64::from(CHANGES_BEHIND_MAX)
    }
}

/// Returns the newest positions.
fn newest(conn: &Connection, after: Position) -> Result<Position, Failure> {
    let newest = Position::end(conn)?;
    if after.jobs > newest.jobs || after.batches > newest.batches {
        return Err(StoreError::from(InvalidFeed::Foreign).into());
    }
    Ok(newest)
}

fn activity(conn: &Connection, after: Position, lengths: u32) -> Result<Activity, Failure> {
    let upto = newest(conn, after)?;
    let mut count = conn.prepare_cached(sql!("feed/activity"))?;
    let counted = count.query_map((after.jobs, upto.jobs, lengths), counted)?.collect::<Result<_, _>>()?;
    Ok(Activity { counted, end: upto.position() })
}

fn read(conn: &Connection, after: Position, upto: Option<Position>, limit: u32) -> Result<FeedPage, Failure> {
    let newest = newest(conn, after)?;
    let upto = upto.unwrap_or(newest);
    if upto.jobs < after.jobs || upto.batches < after.batches {
        return Ok(FeedPage { changes: Vec::new(), end: after.position(), more: false });
    }
    let mut place = after;
    let mut changes = Vec::new();
    let mut jobs = conn.prepare_cached(sql!("feed/jobs"))?;
    for change in jobs.query_map((after.jobs, upto.jobs, limit), job_change)? {
        let change = change?;
        place.jobs = change.pos;
        changes.push((place.position(), Change::Job(change)));
    }
    let left = limit.saturating_sub(u32::try_from(changes.len()).unwrap_or(u32::MAX));
    let mut batches = conn.prepare_cached(sql!("feed/batches"))?;
    for change in batches.query_map((after.batches, upto.batches, left), batch_change)? {
        let change = change?;
        place.batches = change.pos;
        changes.push((place.position(), Change::Batch(change)));
    }
    let more = changes.len() >= limit as usize;
    let end = if more { place } else { upto };
    Ok(FeedPage { changes, end: end.position(), more })
}

fn counted(row: &Row<'_>) -> rusqlite::Result<Counted> {
    Ok(Counted {
        at_s: row.get(0)?,
        verb: row::word(row, 1)?,
        times: row.get::<_, u32>(2)?.into(),
        took_ms: row::numbers(row, 3)?,
    })
}

fn job_change(row: &Row<'_>) -> rusqlite::Result<JobChange> {
    Ok(JobChange {
        pos: row.get(0)?,
        job: row::job_id(row, 1)?,
        at: row::time(row, 2)?,
        verb: row::word(row, 3)?,
        from: row::word_opt(row, 4)?,
        to: row::word(row, 5)?,
        attempt: row.get(6)?,
        worker: row::worker_opt(row, 7)?,
        ready_at: row::time_opt(row, 8)?,
        error_code: row.get(9)?,
        kind: row.get(10)?,
        queue: row.get(11)?,
        batch: row::batch_opt(row, 12)?,
    })
}

fn batch_change(row: &Row<'_>) -> rusqlite::Result<BatchChange> {
    Ok(BatchChange {
        pos: row.get(0)?,
        batch: row::batch_id(row, 1)?,
        dag: row.get(2)?,
        task: row.get(3)?,
        at: row::time(row, 4)?,
        verb: row::word(row, 5)?,
        from: row.get(6)?,
        to: row.get(7)?,
    })
}
