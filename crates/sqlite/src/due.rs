//! When there is something to do for the workers of this process without anybody's doing: a job becomes due, also one
//! that waits in its group for its time, or a token of a rate comes back.

use std::time::Duration;

use milepost_core::job::Priority;
use milepost_core::port::StoreResult;
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::clock::{micros, now_ms};
use crate::failure::Failure;
use crate::pace::Pace;
use crate::query;
use crate::served::Lane;
use crate::store::SqliteStore;

/// How often it is looked at the most.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// When it is looked again after a failure.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Watches for what becomes due. What others commit is announced by the writer thread, and then asked for anew.
pub(crate) struct DueTimes {
    store: SqliteStore,
    /// Commits of this process: a claim announces nothing and yet spends tokens.
    changes: watch::Receiver<()>,
    pace: Pace,
    /// Everything that was due at this time has been announced.
    announced_ms: i64,
    /// The next time after that, as far as known.
    next_ms: Option<i64>,
    /// Whether that is not known any more.
    stale: bool,
}

impl DueTimes {
    pub(crate) fn new(store: SqliteStore, changes: watch::Receiver<()>) -> Self {
        let pace = Pace::new(LOOK_EVERY);
        Self { store, changes, pace, announced_ms: 0, next_ms: None, stale: true }
    }

    /// Notes that whoever waits was told to look now.
    pub(crate) fn announced(&mut self) {
        self.announced_ms = now_ms();
        self.next_ms = self.next_ms.filter(|&at_ms| at_ms > self.announced_ms);
        self.stale = true;
    }

    /// Waits until something is due.
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

    /// Waits until what is known may have changed.
    async fn news(changes: &mut watch::Receiver<()>, stale: bool) {
        // The bell lives as long as the store that is held here.
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
            // Before the first migration there is nothing to see. Waiters poll, too, so this is not pressing.
            Err(error) => {
                tracing::debug!(error = error.chain(), "it is unknown what becomes due");
                sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Waits for a time; for ever when there is none.
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
    /// When something is due after a time for those who are served here.
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
    let mut statement = conn.prepare_cached(query::NEXT_DUE)?;
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
    Ok(conn.prepare_cached(query::NEXT_TIMED)?.query_row([after_ms], |row| row.get(0))?)
}

fn next_token(conn: &Connection, after_ms: i64) -> Result<Option<i64>, Failure> {
    let token_us: Option<i64> =
        conn.prepare_cached(query::NEXT_TOKEN)?.query_row([micros(after_ms)], |row| row.get(0))?;
    // Claims look at whole milliseconds: in the next one it is surely there.
    Ok(token_us.map(|at_us| at_us / 1000 + 1))
}
