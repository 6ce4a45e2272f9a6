//! Read connections, used on blocking threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use milepost_core::error::StoreError;
use milepost_core::pool::PoolView;
use milepost_core::port::StoreResult;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{Failure, Locked, defect, is_busy};
use crate::file::{self, OpenedFile};
use crate::lock_wait::Patience;
use crate::options::{SqliteOptions, Threads};

type Reader = (Connection, Patience);

/// The read connections; each is opened when it is first needed.
pub(crate) struct Readers {
    pool: Arc<Pool>,
    turns: Arc<Semaphore>,
    /// The maximum number of concurrent reads.
    max: u32,
    /// How many reads had to wait for a connection.
    waits: AtomicU64,
}

struct Pool {
    path: PathBuf,
    place: Arc<str>,
    options: SqliteOptions,
    idle: Mutex<Vec<Reader>>,
    /// The file of the writer. A connection to another one that has its name is refused.
    opened: OpenedFile,
}

impl Readers {
    /// Creates a pool of up to `max` connections to the file.
    pub(crate) fn new(
        max: u32,
        opened: OpenedFile,
        path: &Path,
        options: SqliteOptions,
        place: Arc<str>,
    ) -> Self {
        let pool = Pool { path: path.to_owned(), place, options, idle: Mutex::default(), opened };
        Self {
            pool: Arc::new(pool),
            turns: Arc::new(Semaphore::new(max as usize)),
            max,
            waits: AtomicU64::new(0),
        }
    }

    /// Waits for the reads in progress and closes their connections.
    pub(crate) async fn close(&self) {
        let turns = self.turns.acquire_many(self.max).await;
        self.turns.close();
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        drop(turns);
    }

    /// Returns the current usage of the pool, under this name.
    pub(crate) fn view(&self, name: &'static str) -> PoolView {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        let in_use = self.max.saturating_sub(count(self.turns.available_permits()));
        let waits = self.waits.load(Ordering::Relaxed);
        PoolView { name, in_use, idle: count(idle), max: self.max, waits }
    }

    /// Runs the closure on one snapshot of the file. Fails if the file was replaced or deleted meanwhile.
    pub(crate) async fn read<T, F>(&self, verb: &'static str, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        if self.turns.available_permits() == 0 {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|closed| defect(verb, closed.to_string()))?;
        let pool = Arc::clone(&self.pool);
        // The permit is held until the read ends, even if the caller stops waiting.
        let read = move || {
            let outcome = pool.read(verb, work);
            drop(turn);
            outcome
        };
        if self.pool.options.threads == Threads::OfCallers {
            return read();
        }
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|stopped| Err(defect(verb, format!("the read was aborted: {stopped}"))))
    }
}

impl Pool {
    fn read<T, F>(&self, verb: &'static str, work: F) -> StoreResult<T>
    where
        F: FnOnce(&Connection) -> Result<T, Failure>,
    {
        let begun = Instant::now();
        self.try_read(begun, work).map_err(|failure| match failure {
            Failure::Sql(source) if is_busy(&source) => StoreError::Unavailable {
                place: self.place.to_string(),
                cause: Box::new(Locked { waited: begun.elapsed(), source }),
            },
            other => other.at(verb, &self.place),
        })
    }

    fn try_read<T, F>(&self, begun: Instant, work: F) -> Result<T, Failure>
    where
        F: FnOnce(&Connection) -> Result<T, Failure>,
    {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (conn, patience) = match idle {
            Some(reader) => reader,
            None => file::open_reader(&self.path, self.options.busy_timeout)?,
        };
        if let Some(replaced) = self.opened.replaced() {
            return Err(replaced.into());
        }
        patience.extend(begun + self.options.busy_timeout);
        let snapshot = conn.unchecked_transaction()?;
        let outcome = work(&snapshot);
        snapshot.finish()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((conn, patience));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_read_that_nobody_waits_for_keeps_its_turn_until_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("CREATE TABLE t (n)").unwrap();
        let readers =
            Readers::new(1, OpenedFile::of(&conn, &path), &path, SqliteOptions::default(), "the file".into());
        let (go_on, told) = mpsc::channel::<()>();
        let mut read = Box::pin(readers.read("wait", move |_| Ok(told.recv().is_ok())));
        let begun = std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
        assert!(begun.await.is_pending());
        drop(read);
        assert_eq!(readers.view("test").in_use, 1);
        go_on.send(()).unwrap();
        assert!(readers.read("next", |_| Ok(true)).await.unwrap());
        assert_eq!(readers.view("test").in_use, 0);
    }
}
