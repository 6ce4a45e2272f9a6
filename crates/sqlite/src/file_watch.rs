//! Checks by the writer thread between its transactions: commits of other processes, and stop requests.

use milepost_core::sql;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::batch::is_needed;
use crate::command::Hint;
use crate::notifications::Notifier;

/// Other processes count as writing for this long after one of their commits.
const NEIGHBOURS_FOR: Duration = Duration::from_secs(10);

/// The last observed state of the file, to announce changes.
pub(crate) struct FileState {
    /// The value of `PRAGMA data_version`, which changes when another connection commits.
    version: Option<i64>,
    neighbour_at: Option<Instant>,
    /// The stop requests: their number, and a sum that changes with them.
    stops: (i64, i64),
    /// The last known end of the event log.
    log_end: Option<i64>,
}

impl FileState {
    pub(crate) const fn new() -> Self {
        Self { version: None, neighbour_at: None, stops: (0, 0), log_end: None }
    }

    /// Returns whether another process has written recently.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.neighbour_at.is_some_and(|at| at.elapsed() < NEIGHBOURS_FOR)
    }

    /// Checks the file and announces commits of other processes.
    pub(crate) fn watch(&mut self, conn: &Connection, notifier: &Notifier) {
        if let Err(error) = self.try_watch(conn, notifier) {
            // Before the first migration there are no tables.
            tracing::debug!(%error, "changes of the file cannot be detected");
        }
    }

    fn try_watch(&mut self, conn: &Connection, notifier: &Notifier) -> rusqlite::Result<()> {
        let version: i64 = conn.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        let first = self.version.is_none();
        if self.version.replace(version) != Some(version) {
            self.neighbour_at = (!first).then(Instant::now);
            self.announce_theirs(conn, notifier)?;
        }
        Ok(())
    }

    /// Announces new events in the log. Triggers can add events to any verb.
    pub(crate) fn announce_events(&mut self, conn: &Connection, notifier: &Notifier) {
        if !notifier.is_log_followed() {
            return;
        }
        let end =
            conn.prepare_cached(sql!("event/end")).and_then(|mut end| end.query_row((), |row| row.get(0)));
        match end {
            Ok(end) if end > self.log_end => {
                self.log_end = end;
                notifier.ring_for_log();
            }
            Ok(_) => {}
            // Before the first migration there are no tables.
            Err(error) => tracing::debug!(%error, "the log of events cannot be read"),
        }
    }

    fn announce_theirs(&mut self, conn: &Connection, notifier: &Notifier) -> rusqlite::Result<()> {
        let stops = conn
            .prepare_cached(sql!("stop_requests"))?
            .query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let stop = self.stops != stops && stops.0 > 0;
        self.stops = stops;
        notifier.ring(Hint { ready: true, stop });
        announce_batches(conn, notifier);
        self.announce_events(conn, notifier);
        Ok(())
    }
}

/// Announces batch work that a transaction deferred.
pub(crate) fn announce_batches(conn: &Connection, notifier: &Notifier) {
    match is_needed(conn) {
        Ok(true) => notifier.ring_for_batches(),
        Ok(false) => {}
        // Before the first migration there are no tables.
        Err(error) => tracing::debug!(?error, "batches cannot be read"),
    }
}
