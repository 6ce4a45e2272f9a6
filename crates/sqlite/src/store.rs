//! The store: one file, with a writer thread and a few read connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use milepost_core::audit::Actor;
use milepost_core::error::StoreError;
use milepost_core::pool::PoolView;
use milepost_core::port::StoreResult;
use milepost_core::schema::{Migrated, MigrationPlan};
use rusqlite::{Connection, Transaction};
use tempfile::TempDir;

use crate::command::{Hint, Message};
use crate::error::{Failure, defect};
use crate::file::OpenedFile;
use crate::notifications::Notifier;
use crate::options::SqliteOptions;
use crate::reader::Readers;
use crate::served_lanes::Served;
use crate::writer::Writer;
use crate::{file, migrate};

/// The maximum number of concurrent reads.
const READERS: u32 = 4;
/// The maximum number of concurrent reads for access control.
const ACCESS_READERS: u32 = 2;

/// A store in one SQLite file. Cloning is cheap; the clones share one writer thread, which ends when the last clone and the last wake
/// stream are dropped.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
    /// The actor of the changes made through it.
    actor: Option<Arc<Actor>>,
}

struct Inner {
    path: PathBuf,
    place: Arc<str>,
    options: SqliteOptions,
    writer: Writer,
    readers: Readers,
    /// For access control, in a separate pool: queries may take long, and a heartbeat's request must not wait for them during
    /// authentication.
    access: Readers,
    notifier: Arc<Notifier>,
    served: Served,
    /// The folder of a temporary file; removed last, when the file is no longer used.
    _folder: Option<TempDir>,
}

impl SqliteStore {
    /// Opens the file and creates it if it is missing. Does not [migrate](Self::migrate), and changes nothing in a file that was never
    /// migrated. Blocks while another process keeps the file locked, at most `busy_timeout`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] contains the file and the reason why it cannot be used.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> StoreResult<Self> {
        let path = path.as_ref();
        // SQLite would parse such a path as a URI, whose options can keep the database in memory or turn locks off.
        let is_uri = path.to_str().is_some_and(|path| path.starts_with("file:"));
        let path = if is_uri { &Path::new(".").join(path) } else { path };
        Self::open_in(path, options, None)
    }

    /// Creates a migrated store in a temporary file, for tests. The file is removed with the last clone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if no file can be created in the folder for temporary files.
    pub async fn temporary() -> StoreResult<Self> {
        let folder = tempfile::tempdir().map_err(|error| StoreError::Unavailable {
            place: std::env::temp_dir().display().to_string(),
            cause: error.into(),
        })?;
        let path = folder.path().join("milepost.db");
        let store = Self::open_in(&path, SqliteOptions::default(), Some(folder))?;
        store.migrate().await?;
        Ok(store)
    }

    fn open_in(path: &Path, options: SqliteOptions, folder: Option<TempDir>) -> StoreResult<Self> {
        let place: Arc<str> = path.display().to_string().into();
        let (conn, patience) = file::open_writer(path, options.busy_timeout)?;
        let opened = OpenedFile::of(&conn, path);
        let notifier = Arc::new(Notifier::new());
        let (file, told) = (opened.clone(), Arc::clone(&notifier));
        let writer = Writer::start((conn, file), patience, options, Arc::clone(&place), told)?;
        let readers = |max| Readers::new(max, opened.clone(), path, options, Arc::clone(&place));
        let (readers, access) = (readers(READERS), readers(ACCESS_READERS));
        let (path, served) = (path.to_owned(), Served::default());
        let inner =
            Inner { path, place, options, writer, readers, access, notifier, served, _folder: folder };
        Ok(Self { inner: Arc::new(inner), actor: None })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Migrates the schema to this binary's version, in one transaction, and switches the file to WAL mode. Any number of processes may do
    /// so at the same time. A newer file that allows this binary stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Schema`] if the file is too new for the binary, or if a migration was altered.
    pub async fn migrate(&self) -> StoreResult<Migrated> {
        let (path, busy_timeout) = (self.inner.path.clone(), self.inner.options.busy_timeout);
        tokio::task::spawn_blocking(move || file::turn_to_wal(&path, busy_timeout))
            .await
            .unwrap_or_else(|stopped| Err(defect("migrate", stopped.to_string())))?;
        self.write("migrate", Hint::NONE, migrate::migrate).await
    }

    /// Returns what [`migrate`](Self::migrate) would do. Changes nothing.
    ///
    /// # Errors
    /// As [`check_schema`](Self::check_schema), except for a file that is too old.
    pub async fn plan_migration(&self) -> StoreResult<MigrationPlan> {
        self.read("plan_migration", migrate::plan).await
    }

    /// Checks that the schema has the version that this binary needs, or a newer one that allows this binary.
    ///
    /// # Errors
    /// [`StoreError::Schema`] describes how it differs.
    pub async fn check_schema(&self) -> StoreResult<()> {
        self.read("check_schema", migrate::check).await
    }

    /// Returns the usage of the read connections. The writing connection is not included; writers wait in its queue.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        vec![self.inner.readers.view("readers"), self.inner.access.view("access")]
    }

    /// Finishes earlier calls and closes the file; later calls fail. Await this before moving, copying or removing the file: the last
    /// connection of a process removes the log when it closes, and otherwise a new file would be opened with the log that has the same
    /// name.
    pub async fn close(&self) {
        self.inner.readers.close().await;
        self.inner.access.close().await;
        self.inner.writer.close().await;
    }

    /// Runs a closure on the writer thread, in a separate savepoint inside the next write transaction, and returns when that transaction is
    /// durable. If the closure fails or panics, only its own writes are rolled back. It should be short (below 50 ms), and must neither
    /// commit nor roll back.
    ///
    /// # Errors
    /// The closure's error, or a [`StoreError`] if the closure panicked or the transaction was lost.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    {
        self.inner.writer.call("transaction", Hint::READY, work).await
    }

    pub(crate) async fn write<T, F>(&self, verb: &'static str, hint: Hint, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    {
        self.inner
            .writer
            .call(verb, hint, work)
            .await
            .map_err(|failure: Failure| failure.at(verb, &self.inner.place))
    }

    pub(crate) async fn read<T, F>(&self, verb: &'static str, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.inner.readers.read(verb, work).await
    }

    /// As [`read`](Self::read), on the pool for access control.
    pub(crate) async fn read_access<T, F>(&self, verb: &'static str, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.inner.access.read(verb, work).await
    }

    /// Returns the same store, with this actor.
    pub(crate) fn with_actor(&self, actor: Actor) -> Self {
        Self { inner: Arc::clone(&self.inner), actor: Some(Arc::new(actor)) }
    }

    pub(crate) fn actor(&self) -> Option<Arc<Actor>> {
        self.actor.clone()
    }

    pub(crate) fn options(&self) -> SqliteOptions {
        self.inner.options
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.inner.notifier
    }

    /// Returns the sender of messages to the writer thread.
    pub(crate) fn writer_messages(&self) -> Sender<Message> {
        self.inner.writer.sender()
    }

    pub(crate) fn served(&self) -> &Served {
        &self.inner.served
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("place", &self.inner.place).finish_non_exhaustive()
    }
}
