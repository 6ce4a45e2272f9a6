//! What the writer thread sees of the file between its transactions: commits of other processes, and requests
//! to stop.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::batch::is_needed;
use crate::bell::Bell;
use crate::command::Hint;
use crate::query;

/// Other processes count as writing for this long after one of their commits.
const NEIGHBOURS_FOR: Duration = Duration::from_secs(10);

/// Keeps what was seen and announces what is new.
pub(crate) struct Lookout {
    /// Of `PRAGMA data_version`, which changes when another connection commits.
    version: Option<i64>,
    neighbour_at: Option<Instant>,
    /// The requests to stop, as a sum that changes with them.
    stops: (i64, i64),
    /// Where the log of events ended.
    log_end: Option<i64>,
}

impl Lookout {
    pub(crate) const fn new() -> Self {
        Self { version: None, neighbour_at: None, stops: (0, 0), log_end: None }
    }

    /// Whether another process wrote lately.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.neighbour_at.is_some_and(|at| at.elapsed() < NEIGHBOURS_FOR)
    }

    /// Looks at the file and announces what others committed.
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
            self.announce_theirs(conn, bell)?;
        }
        Ok(())
    }

    /// Says so when the log of events has grown: triggers write to it beside any verb.
    pub(crate) fn announce_events(&mut self, conn: &Connection, bell: &Bell) {
        if !bell.is_log_followed() {
            return;
        }
        let end =
            conn.prepare_cached(query::EVENT_END).and_then(|mut end| end.query_row((), |row| row.get(0)));
        match end {
            Ok(end) if end > self.log_end => {
                self.log_end = end;
                bell.ring_for_log();
            }
            Ok(_) => {}
            // Before the first migration there is nothing to see.
            Err(error) => tracing::debug!(%error, "the log of events cannot be looked at"),
        }
    }

    fn announce_theirs(&mut self, conn: &Connection, bell: &Bell) -> rusqlite::Result<()> {
        let stops =
            conn.prepare_cached(query::STOP_REQUESTS)?.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let stop = self.stops != stops && stops.0 > 0;
        self.stops = stops;
        bell.ring(Hint { ready: true, stop });
        announce_batches(conn, bell);
        Ok(())
    }
}

/// Says so when a transaction left something to be done for batches.
pub(crate) fn announce_batches(conn: &Connection, bell: &Bell) {
    match is_needed(conn) {
        Ok(true) => bell.ring_for_batches(),
        Ok(false) => {}
        // Before the first migration there is nothing to see.
        Err(error) => tracing::debug!(?error, "batches cannot be looked at"),
    }
}
