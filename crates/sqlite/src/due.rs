//! The times at which this process's workers have something to do without any commit: a job becomes due, including one that waits in its
//! group for its time, or a token of a rate becomes available.

use std::time::Duration;

use milepost_core::job::Priority;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::check_rate::Pace;
use crate::clock::{micros, now_ms};
use crate::error::Failure;
use crate::served_lanes::Lane;
use crate::store::SqliteStore;

/// The shortest interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The delay before the next check after a failure.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Watches for jobs and tokens that become due. Commits of other processes are announced by the writer thread; the next time is then read
/// again.
pub(crate) struct DueTimes {
    store: SqliteStore,
    /// Commits of this process: a claim announces nothing, but it uses tokens.
    changes: watch::Receiver<()>,
    pace: Pace,
    /// Everything that was due at this time has been announced.
    announced_ms: i64,
    /// The next time after that, if known.
    next_ms: Option<i64>,
    /// Whether the next time has to be read again.
    stale: bool,
}

impl DueTimes {
    pub(crate) fn new(store: SqliteStore, changes: watch::Receiver<()>) -> Self {
        let pace = Pace::new(LOOK_EVERY);
        Self { store, changes, pace, announced_ms: 0, next_ms: None, stale: true }
    }

    /// Records that waiting workers have just been notified.
    pub(crate) fn announced(&mut self) {
        self.announced_ms = now_ms();
        self.next_ms = self.next_ms.filter(|&at_ms| at_ms > self.announced_ms);
        self.stale = true;
    }

    /// Waits until a job or a token is due.
    pub(crate) async fn next(&mut self) {
        loop {
            tokio::select! {
                biased;
                () = reached(self.next_ms) => return,
                () = Self::news(&mut self.changes, self.stale) => {}
            }
            self.stale = true;
            tokio::select! {
                biased;
                () = reached(self.next_ms) => return,
                () = sleep_until(self.pace.look_at()) => {}
            }
            self.look().await;
        }
    }

    /// Waits until the known next time may have changed.
    async fn news(changes: &mut watch::Receiver<()>, stale: bool) {
        // The store held here keeps the notifier alive.
        if !stale && changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn look(&mut self) {
        self.changes.mark_unchanged();
        let begun = self.pace.begin();
        let next = self.store.next_due(self.announced_ms).await;
        self.pace.end(begun);
        match next {
            Ok(next_ms) => (self.next_ms, self.stale) = (next_ms, false),
            // Before the first migration there are no tables. Workers also poll, so this is not urgent.
            Err(error) => {
                tracing::debug!(error = error.chain(), "the time of the next due job cannot be read");
                sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Waits until a time, or forever without one.
async fn reached(at_ms: Option<i64>) {
    match at_ms {
        Some(at_ms) => {
            let wait_ms = at_ms.saturating_sub(now_ms()).max(0).cast_unsigned();
            sleep(Duration::from_millis(wait_ms)).await;
        }
        None => std::future::pending().await,
    }
}

impl SqliteStore {
    /// Returns the next time after `after_ms` at which something is due for the workers of this process.
    async fn next_due(&self, after_ms: i64) -> StoreResult<Option<i64>> {
        let lanes = self.served().lanes();
        if lanes.is_empty() {
            return Ok(None);
        }
        self.read("next_due", move |conn| {
            let next =
                [next_job(conn, &lanes, after_ms)?, next_timed(conn, after_ms)?, next_token(conn, after_ms)?];
            Ok(next.into_iter().flatten().min())
        })
        .await
    }
}

fn next_job(conn: &Connection, lanes: &[Lane], after_ms: i64) -> Result<Option<i64>, Failure> {
    let mut statement = conn.prepare_cached(sql!("next_due"))?;
    let mut next: Option<i64> = None;
    for (queue, kind) in lanes {
        for priority in Priority::ALL {
            let due: Option<i64> =
                statement.query_row((queue, kind, priority.get(), after_ms), |row| row.get(0)).optional()?;
            next = next.into_iter().chain(due).min();
        }
    }
    Ok(next)
}

fn next_timed(conn: &Connection, after_ms: i64) -> Result<Option<i64>, Failure> {
    Ok(conn.prepare_cached(sql!("next_timed"))?.query_row([after_ms], |row| row.get(0))?)
}

fn next_token(conn: &Connection, after_ms: i64) -> Result<Option<i64>, Failure> {
    let token_us: Option<i64> =
        conn.prepare_cached(sql!("next_token"))?.query_row([micros(after_ms)], |row| row.get(0))?;
    // Claims use whole milliseconds: the token is certainly available in the next one.
    Ok(token_us.map(|at_us| at_us / 1000 + 1))
}
