//! Rollups: counts of the history by minute, queue and kind. See `milepost_core::rollup`.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::pattern::glob_patterns;
use milepost_core::port::{RollupStore, StoreResult};
use milepost_core::rollup::{
    self, Begin, Count, Rollup, RollupFilter, Rollups, SAMPLE_MAX, STEPS, Sampled, Tally,
};
use milepost_core::sql;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::row::word;
use crate::store::SqliteStore;

/// How far in the future a period may begin, in seconds. Later ones were added while the clock was ahead, and are deleted.
const AHEAD_S: i64 = 24 * 3600;

/// The counts since the last rollup.
struct Counted {
    /// The position of the last rollup.
    last: Option<i64>,
    /// The position up to which was counted.
    end: i64,
    rollups: Vec<Rollup>,
}

#[async_trait]
impl RollupStore for SqliteStore {
    async fn roll_up(&self, every: Duration) -> StoreResult<bool> {
        // A reader counts, so that writers do not wait for it.
        let Some(counted) = self.read("roll_up", move |conn| count(conn, every, now_ms())).await? else {
            return Ok(false);
        };
        self.write("roll_up", Hint::NONE, move |tx| keep(tx, &counted, now_ms())).await
    }

    async fn rollups(&self, filter: &RollupFilter) -> StoreResult<Rollups> {
        let filter = filter.clone();
        self.read("rollups", move |conn| read(conn, &filter, now_ms())).await
    }
}

fn count(conn: &Connection, every: Duration, now_ms: i64) -> Result<Option<Counted>, Failure> {
    let (last, at_ms, newest): (Option<i64>, Option<i64>, i64) = conn
        .prepare_cached(sql!("rollup/position"))?
        .query_row((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let age_ms = at_ms.map(|at_ms| now_ms - at_ms);
    let after = match rollup::begin(every, age_ms, newest) {
        Begin::Later => return Ok(None),
        // After a restore, the history can end before the last rollup.
        Begin::AfterLast => last.unwrap_or(newest).min(newest),
        Begin::First => 0,
        Begin::Now => newest,
    };
    let tallies = tally(conn, after, newest)?;
    let was_restored = last.is_some_and(|last| last > newest);
    if !was_restored && !rollup::is_stored(age_ms, &tallies) {
        return Ok(None);
    }
    Ok(Some(Counted { last, end: newest, rollups: rollup::roll_up(&tallies) }))
}

fn tally(conn: &Connection, after: i64, upto: i64) -> Result<Vec<Tally>, Failure> {
    let mut samples: HashMap<(i64, Verb), Vec<Sampled>> = HashMap::new();
    let mut sample = conn.prepare_cached(sql!("rollup/sample"))?;
    let mut rows = sample.query((after, upto, SAMPLE_MAX))?;
    while let Some(row) = rows.next()? {
        let took_ms: Option<i64> = row.get(4)?;
        let change =
            Sampled { queue: row.get(2)?, kind: row.get(3)?, took_ms: took_ms.map(i64::unsigned_abs) };
        samples.entry((row.get(0)?, word(row, 1)?)).or_default().push(change);
    }
    let mut counts = conn.prepare_cached(sql!("rollup/tally"))?;
    let tallies = counts.query_map((after, upto), |row| {
        let (at_s, verb) = (row.get(0)?, word(row, 1)?);
        let sample = samples.remove(&(at_s, verb)).unwrap_or_default();
        Ok(Tally { at_s, verb, times: times(row, 2)?, sample })
    })?;
    Ok(tallies.collect::<rusqlite::Result<_>>()?)
}

/// Stores a rollup with its end, unless another process was first; returns whether it did. Makes old periods longer, and deletes the oldest.
fn keep(tx: &Transaction<'_>, counted: &Counted, now_ms: i64) -> Result<bool, Failure> {
    let Counted { last, end, rollups } = counted;
    if tx.prepare_cached(sql!("rollup/advance"))?.execute((end, now_ms, last))? == 0 {
        return Ok(false);
    }
    let [shortest, .., longest] = STEPS;
    let mut add = tx.prepare_cached(sql!("rollup/add"))?;
    for Rollup { at_s, queue, kind, verb, bucket, times } in rollups {
        add.execute((shortest.seconds, at_s, queue, kind, verb.as_str(), bucket, times.cast_signed()))?;
    }
    let now_s = now_ms.div_euclid(1000);
    let mut forget = tx.prepare_cached(sql!("rollup/forget"))?;
    for pair in STEPS.windows(2) {
        let (short, long) = (pair[0], pair[1]);
        let before = (now_s - short.kept_s).div_euclid(long.seconds) * long.seconds;
        tx.prepare_cached(sql!("rollup/fold"))?.execute((short.seconds, long.seconds, before))?;
        forget.execute((short.seconds, before))?;
    }
    forget.execute((longest.seconds, now_s - longest.kept_s))?;
    tx.prepare_cached(sql!("rollup/forget_future"))?.execute([now_s + AHEAD_S])?;
    Ok(true)
}

fn read(conn: &Connection, filter: &RollupFilter, now_ms: i64) -> Result<Rollups, Failure> {
    let RollupFilter { range, queue, kind, scope } = filter;
    let json =
        |patterns: Option<Vec<String>>| patterns.map(|patterns| serde_json::json!(patterns).to_string());
    let (queues, kinds) = (json(glob_patterns(&scope.queues)), json(glob_patterns(&scope.kinds)));
    let upto = conn
        .prepare_cached(sql!("rollup/position"))?
        .query_row((), |row| row.get::<_, Option<i64>>(1))
        .optional()?;
    let mut counts = conn.prepare_cached(sql!("rollup/read"))?;
    let now_s = now_ms.div_euclid(1000);
    let from_s = range.from_s(now_s);
    let [minutes, tens, hours] = STEPS;
    let counts = counts.query_map(
        (range.step_s(), from_s, queue, kind, minutes.seconds, tens.seconds, hours.seconds, queues, kinds),
        |row| {
            Ok(Count { at_s: row.get(0)?, verb: word(row, 1)?, bucket: row.get(2)?, times: times(row, 3)? })
        },
    )?;
    let counts = counts.collect::<rusqlite::Result<_>>()?;
    Ok(Rollups { now_s, counts, upto_s: upto.flatten().map(|at_ms| at_ms.div_euclid(1000)) })
}

fn times(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}
