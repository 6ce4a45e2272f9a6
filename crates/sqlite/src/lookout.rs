//! What the writer thread sees of the file between its transactions: commits of other processes, requests
//! to stop, and jobs whose time has come.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::bell::Bell;
use crate::clock::{micros, now_ms};
use crate::command::Hint;
use crate::query;
use crate::writer::LOOK_EVERY;

/// Other processes count as writing for this long after one of their commits.
const NEIGHBOURS_FOR: Duration = Duration::from_secs(10);

/// Keeps what was seen and announces what is new.
pub(crate) struct Lookout {
    /// Of `PRAGMA data_version`, which changes when another connection commits.
    version: Option<i64>,
    neighbour_at: Option<Instant>,
    looked_at: Option<Instant>,
    /// Every job that was ready at this time has been announced.
    announced_ms: i64,
    /// The next time after that at which a job becomes ready or a token comes back.
    due_ms: Option<i64>,
    /// Whether something was committed since `due_ms` was read.
    stale: bool,
    /// The requests to stop, as a sum that changes with them.
    stops: (i64, i64),
}

impl Lookout {
    pub(crate) const fn new() -> Self {
        Self {
            version: None,
            neighbour_at: None,
            looked_at: None,
            announced_ms: 0,
            due_ms: None,
            stale: true,
            stops: (0, 0),
        }
    }

    /// Whether another process wrote lately.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.neighbour_at.is_some_and(|at| at.elapsed() < NEIGHBOURS_FOR)
    }

    /// Announces what this process committed.
    pub(crate) fn committed(&mut self, bell: &Bell, hint: Hint) {
        self.stale = true;
        self.announce(bell, hint);
    }

    /// Looks at the file and announces what others committed and what has become due.
    pub(crate) fn watch(&mut self, conn: &Connection, bell: &Bell) {
        if let Err(error) = self.try_watch(conn, bell) {
            // Before the first migration there is nothing to see.
            tracing::debug!(%error, "the file cannot be watched");
        }
    }

    fn try_watch(&mut self, conn: &Connection, bell: &Bell) -> rusqlite::Result<()> {
        let version: i64 = conn.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        let first = self.version.is_none();
        if self.version.replace(version) != Some(version) {
            self.neighbour_at = (!first).then(Instant::now);
            self.stale = true;
            self.announce_theirs(conn, bell)?;
        }
        let looked_lately = self.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY);
        if bell.is_awaited() && !looked_lately {
            self.looked_at = Some(Instant::now());
            self.announce_due(conn, bell)?;
        }
        Ok(())
    }

    fn announce_theirs(&mut self, conn: &Connection, bell: &Bell) -> rusqlite::Result<()> {
        let stops =
            conn.prepare_cached(query::STOP_REQUESTS)?.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let stop = self.stops != stops && stops.0 > 0;
        self.stops = stops;
        self.announce(bell, Hint { ready: true, stop });
        Ok(())
    }

    fn announce_due(&mut self, conn: &Connection, bell: &Bell) -> rusqlite::Result<()> {
        if self.stale {
            self.due_ms = next_due(conn, self.announced_ms)?;
            self.stale = false;
        }
        if self.due_ms.is_some_and(|due| due <= now_ms()) {
            self.announce(bell, Hint::READY);
            self.due_ms = next_due(conn, self.announced_ms)?;
        }
        Ok(())
    }

    fn announce(&mut self, bell: &Bell, hint: Hint) {
        if hint.ready {
            self.announced_ms = now_ms();
        }
        bell.ring(hint);
    }
}

/// When the next job becomes ready, or the next token comes back that a job may wait for.
fn next_due(conn: &Connection, after_ms: i64) -> rusqlite::Result<Option<i64>> {
    let job_ms: Option<i64> =
        conn.prepare_cached(query::NEXT_DUE)?.query_row([after_ms], |row| row.get(0))?;
    let token_us: Option<i64> =
        conn.prepare_cached(query::NEXT_TOKEN)?.query_row([micros(after_ms)], |row| row.get(0))?;
    // Claims look at whole milliseconds: in the next one it is surely there.
    let token_ms = token_us.map(|at_us| at_us / 1000 + 1);
    Ok(job_ms.into_iter().chain(token_ms).min())
}
