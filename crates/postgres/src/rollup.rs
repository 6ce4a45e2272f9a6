//! Rollups: counts of the history by minute, queue and kind. See `milepost_core::rollup`.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPosition, InvalidFeed};
use milepost_core::pattern::like_patterns;
use milepost_core::port::{FeedStore, RollupStore, StoreResult};
use milepost_core::rollup::{
    self, Begin, Count, Rollup, RollupFilter, Rollups, SAMPLE_MAX, STEPS, Sampled, Tally,
};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::feed::Position;
use crate::row::{Decoded, named};
use crate::session::Session;
use crate::store::PostgresStore;

/// The end of a rollup, or the beginning of the next.
struct End {
    position: FeedPosition,
    /// The last position in the history.
    pos: i64,
}

#[async_trait]
impl RollupStore for PostgresStore {
    async fn roll_up(&self, every: Duration) -> StoreResult<bool> {
        let fail = |e| self.fail("roll_up", e);
        let row = self.inner.calm.row(sqlx::query(sql!("rollup/position"))).await.map_err(fail)?;
        let row = row.ok_or_else(|| fail(sqlx::Error::RowNotFound))?;
        let last: Option<String> = row.try_get("position").map_err(fail)?;
        let changes: Option<i64> = row.try_get("changes").map_err(fail)?;
        let age_ms: Option<i64> = row.try_get("age_ms").map_err(fail)?;
        let begin = rollup::begin(every, age_ms, changes.unwrap_or(0));
        let after = match (begin, &last) {
            (Begin::Later, _) => return Ok(false),
            (Begin::AfterLast, Some(last)) => {
                let pos: Option<i64> = row.try_get("pos").map_err(fail)?;
                Some(End { position: FeedPosition::new(last.clone()), pos: pos.unwrap_or(0) })
            }
            (Begin::First, _) => Some(End { position: self.feed_begin().await?, pos: 0 }),
            _ => None,
        };
        let (tallies, end) = match after {
            Some(after) => match self.tally(&after).await {
                // The server crashed, or the store was restored: which changes were counted is not known any more.
                Err(StoreError::Feed(InvalidFeed::Foreign)) => (Vec::new(), self.now(changes).await?),
                Ok((tallies, _)) if !rollup::is_stored(age_ms, &tallies) => return Ok(false),
                tallied => tallied?,
            },
            None => (Vec::new(), self.now(changes).await?),
        };
        let rollups = rollup::roll_up(&tallies);
        let keep = async |tx: &mut Session<'_>| keep(tx, last.as_deref(), &end, &rollups).await;
        self.inner.calm.atomically(keep).await.map_err(fail)
    }

    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups> {
        let range = filter.range;
        let query = sqlx::query(sql!("rollup/read"))
            .bind(range.step_s() as i32)
            .bind(range.steps() as i32)
            .bind(filter.queue.clone())
            .bind(filter.kind.clone())
            .bind(STEPS.map(|step| step.seconds as i32).to_vec())
            .bind(like_patterns(&filter.scope.queues))
            .bind(like_patterns(&filter.scope.kinds));
        let rows = self.inner.calm.rows(query).await.map_err(|e| self.fail("rollups", e))?;
        let read = || -> Decoded<Rollups> {
            let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            let (now_s, upto_s) = (first.try_get("now_s")?, first.try_get("upto_s")?);
            let counts = rows.iter().filter_map(|row| counted(row).transpose()).collect::<Decoded<_>>()?;
            Ok(Rollups { now_s, counts, upto_s })
        };
        read().map_err(|e| self.fail("rollups", e))
    }
}

impl PostgresStore {
    /// Returns the position before the first change.
    async fn feed_begin(&self) -> StoreResult<FeedPosition> {
        let end = self.feed_end().await?;
        let epoch = end.as_str().split('/').next().unwrap_or_default();
        Ok(FeedPosition::new(format!("{epoch}/1:1:")))
    }

    async fn now(&self, changes: Option<i64>) -> StoreResult<End> {
        Ok(End { position: self.feed_end().await?, pos: changes.unwrap_or(0) })
    }

    /// Counts the changes between a position and now.
    async fn tally(&self, after: &End) -> StoreResult<(Vec<Tally>, End)> {
        let position = Position::parse(&after.position)?;
        let count = async |tx: &mut Session<'_>| {
            tx.row(sqlx::query(sql!("rollup/without_sorts"))).await?;
            let tally = sqlx::query(sql!("rollup/tally"))
                .bind(position.seen.text.clone())
                .bind(position.epoch.clone())
                .bind(after.pos)
                .bind(f64::from(SAMPLE_MAX));
            tx.rows(tally).await
        };
        // A session with pinned plans: this must not scan a large history.
        let rows = self.inner.intake.atomically(count).await.map_err(|e| self.fail("roll_up", e))?;
        let upto = self.window_end("roll_up", &rows)?;
        let read = || -> Decoded<(Vec<Tally>, Option<i64>)> {
            let tallies = rows.iter().filter_map(|row| tally(row).transpose()).collect::<Decoded<_>>()?;
            Ok((tallies, rows.first().map(|row| row.try_get("pos")).transpose()?.flatten()))
        };
        let (tallies, pos) = read().map_err(|e| self.fail("roll_up", e))?;
        Ok((tallies, End { position: position.behind(&upto), pos: pos.unwrap_or(0) }))
    }
}

/// Stores a rollup with its end, unless another process was first; returns whether it did. Makes old periods longer, and deletes the oldest.
async fn keep(tx: &mut Session<'_>, last: Option<&str>, end: &End, rollups: &[Rollup]) -> Decoded<bool> {
    let advance = sqlx::query(sql!("rollup/advance"))
        .bind(end.position.as_str().to_owned())
        .bind(end.pos)
        .bind(last.map(str::to_owned));
    if tx.execute(advance).await? == 0 {
        return Ok(false);
    }
    let [shortest, .., longest] = STEPS;
    if !rollups.is_empty() {
        let add = sqlx::query(sql!("rollup/add"))
            .bind(shortest.seconds as i32)
            .bind(rollups.iter().map(|its| its.at_s).collect::<Vec<_>>())
            .bind(rollups.iter().map(|its| its.queue.clone()).collect::<Vec<_>>())
            .bind(rollups.iter().map(|its| its.kind.clone()).collect::<Vec<_>>())
            .bind(rollups.iter().map(|its| its.verb.as_str().to_owned()).collect::<Vec<_>>())
            .bind(rollups.iter().map(|its| its.bucket).collect::<Vec<_>>())
            .bind(rollups.iter().map(|its| its.times.cast_signed()).collect::<Vec<_>>());
        tx.execute(add).await?;
    }
    for pair in STEPS.windows(2) {
        let (short, long) = (pair[0], pair[1]);
        let fold = sqlx::query(sql!("rollup/fold"))
            .bind(short.seconds as i32)
            .bind(long.seconds as i32)
            .bind(short.kept_s as i32);
        tx.execute(fold).await?;
    }
    let forget = sqlx::query(sql!("rollup/forget")).bind(longest.seconds as i32).bind(longest.kept_s as i32);
    tx.execute(forget).await?;
    Ok(true)
}

/// Decodes a row; `None` if it only contains the end of the window.
fn tally(row: &PgRow) -> Decoded<Option<Tally>> {
    let Some(at_s) = row.try_get("at_s")? else { return Ok(None) };
    let queues: Option<Vec<Option<String>>> = row.try_get("queues")?;
    let kinds: Option<Vec<Option<String>>> = row.try_get("kinds")?;
    let took_ms: Option<Vec<i64>> = row.try_get("took_ms")?;
    let jobs = queues.unwrap_or_default().into_iter().zip(kinds.unwrap_or_default());
    let sampled =
        |((queue, kind), took_ms): (_, i64)| Sampled { queue, kind, took_ms: u64::try_from(took_ms).ok() };
    let sample = jobs.zip(took_ms.unwrap_or_default()).map(sampled).collect();
    Ok(Some(Tally { at_s, verb: named(row, "verb")?, times: times(row)?, sample }))
}

/// Decodes a row; `None` if it only contains the time.
fn counted(row: &PgRow) -> Decoded<Option<Count>> {
    let Some(at_s) = row.try_get("at_s")? else { return Ok(None) };
    Ok(Some(Count { at_s, verb: named(row, "verb")?, bucket: row.try_get("bucket")?, times: times(row)? }))
}

fn times(row: &PgRow) -> Decoded<u64> {
    Ok(row.try_get::<i64, _>("times")?.cast_unsigned())
}
