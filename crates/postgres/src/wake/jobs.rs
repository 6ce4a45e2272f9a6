//! Check for the waker of workers: whether an active worker could claim a job.

use milepost_core::sql;
use std::time::{Duration, Instant};

use sqlx::Row;

use super::{Handshake, Watch};
use crate::store::PostgresStore;

/// How often the lanes that active workers serve are read.
const LANES_EVERY: Duration = Duration::from_secs(1);

/// Checks for jobs that are ready or will become ready.
pub(super) struct JobWatch {
    store: PostgresStore,
    lanes: Lanes,
    /// Whether the last check started at the bottom of the lanes, not at the floors.
    looked_at_all: bool,
    /// How long the last check took.
    look_took: Duration,
}

/// The (queue, kind) pairs that active workers serve.
#[derive(Default)]
struct Lanes {
    pairs: Vec<(String, String)>,
    workers: i64,
    /// Whether groups have rates.
    paced: bool,
    asked_at: Option<Instant>,
}

impl Watch for JobWatch {
    // A job that is enqueued while the waker is awake waits for the next check.
    const LOOK_EVERY: Duration = Duration::from_millis(1);
    const BLIND: bool = false;
    const HANDSHAKE: Handshake = Handshake { channel: "milepost_wake", sleep: 1, waker: 2 };

    async fn due_in(&mut self) -> Result<Option<Duration>, sqlx::Error> {
        self.claimable_in().await
    }

    fn look_took(&self) -> Duration {
        self.look_took
    }

    fn has_others(&self) -> bool {
        self.lanes.workers > 1
    }

    fn again_in(&self) -> Option<Duration> {
        (!self.looked_at_all).then(|| self.store.inner.floors.bottom_in())
    }
}

impl JobWatch {
    pub(super) fn new(store: PostgresStore) -> Self {
        Self { store, lanes: Lanes::default(), looked_at_all: false, look_took: Duration::ZERO }
    }

    /// Returns the time until an active worker could claim a job; zero: now.
    async fn claimable_in(&mut self) -> Result<Option<Duration>, sqlx::Error> {
        if self.lanes.asked_at.is_none_or(|at| at.elapsed() >= LANES_EVERY) {
            self.refresh_lanes().await?;
        }
        if self.lanes.pairs.is_empty() {
            return Ok(None);
        }
        // First, so that the jobs that it releases are seen.
        let paced = if self.lanes.paced { self.store.pace().await? } else { None };
        let (peeked, timed) = self.peek().await?;
        if timed == Some(Duration::ZERO) {
            self.store.pace().await?;
            return Ok(timed);
        }
        Ok([peeked, timed, paced].into_iter().flatten().min())
    }

    /// Returns the time until a job can be claimed in one of these lanes, and the time until a job that waits in its group
    /// for its start time is due.
    async fn peek(&mut self) -> Result<(Option<Duration>, Option<Duration>), sqlx::Error> {
        let began = Instant::now();
        let pairs: Vec<(&str, &str)> =
            self.lanes.pairs.iter().map(|(q, k)| (q.as_str(), k.as_str())).collect();
        let floors = &self.store.inner.floors;
        let probe = floors.probe(&pairs, 0, false);
        let query = sqlx::query(sql!("peek"))
            .bind(&probe.queues)
            .bind(&probe.kinds)
            .bind(&probe.priorities)
            .bind(&probe.floors);
        let rows = self.store.inner.hot.rows(query).await?;
        self.looked_at_all = probe.from_bottom;
        let (mut soonest, mut timed): (Option<i64>, Option<i64>) = (None, None);
        for row in &rows {
            let lane = usize::try_from(row.try_get::<i64, _>("ord")? - 1).unwrap_or(0);
            let due_in_ms: Option<i64> = row.try_get("due_in_ms")?;
            soonest = soonest.into_iter().chain(row.try_get::<Option<i64>, _>("open_in_ms")?).min();
            let empty_until = if due_in_ms.is_some_and(|ms| ms <= 0) { "ready_at" } else { "at" };
            floors.learn(&probe, lane, row.try_get::<jiff_sqlx::Timestamp, _>(empty_until)?.to_jiff());
        }
        if let Some(last) = rows.last() {
            timed = last.try_get("timed_in_ms")?;
            let took_us: i64 = last.try_get("took_us")?;
            floors.spent(&probe, Duration::from_micros(took_us.unsigned_abs()), 0);
        }
        self.look_took = began.elapsed();
        let within = |ms: Option<i64>| ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        Ok((within(soonest), within(timed)))
    }

    async fn refresh_lanes(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.store.inner.hot.rows(sqlx::query(sql!("lanes"))).await?;
        self.lanes.pairs = rows
            .iter()
            .map(|row| Ok((row.try_get("queue")?, row.try_get("kind")?)))
            .collect::<Result<_, sqlx::Error>>()?;
        self.lanes.workers = rows.first().map_or(Ok(0), |row| row.try_get("workers"))?;
        self.lanes.paced = rows.first().map_or(Ok(false), |row| row.try_get("paced"))?;
        self.lanes.asked_at = Some(Instant::now());
        Ok(())
    }
}
