//! Homes in SQLite files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::{Chunk, Definition, InvalidBulk};
use milepost_core::error::{Cause, StoreError};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{BulkWork, Store, StoreResult};
use milepost_sqlite::bulk::{ChildEvents, ChildJobs, ChunkHandler, Effect, Operations, SqlBulk};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tempfile::TempDir;
use uuid::Uuid;

use super::{Command, Effect as Outcome, Home, ids, names};
use crate::faulty::Faulty;
use crate::faulty::interceptor::{Intercepted, Interceptor, intercept};
use crate::inbox::Desk;
use crate::wait;

/// A store in a SQLite file.
pub struct SqliteHome {
    store: SqliteStore,
    path: PathBuf,
    interceptor: Option<Arc<dyn Interceptor>>,
    _folder: Option<TempDir>,
}

impl SqliteHome {
    /// Creates a home in a new folder, which is removed with it.
    pub async fn fresh() -> Self {
        Self::fresh_in(&std::env::temp_dir()).await
    }

    /// Creates a home in a new folder below this one, which is removed with it.
    pub async fn fresh_in(folder: &Path) -> Self {
        Self::create(folder, SqliteOptions::default()).await
    }

    /// As [`fresh_in`](Self::fresh_in), with these options.
    pub async fn create(folder: &Path, options: SqliteOptions) -> Self {
        let folder = tempfile::tempdir_in(folder).expect("a folder");
        let home = Self::create_at(folder.path().join("jobs.db"), options).await;
        Self { _folder: Some(folder), ..home }
    }

    /// Creates a home in this file, which is kept.
    pub async fn create_at(path: PathBuf, options: SqliteOptions) -> Self {
        let home = Self::open(path, options);
        home.store.migrate().await.expect("migrated");
        let table =
            "CREATE TABLE test_effect (job_id BLOB NOT NULL, token INTEGER NOT NULL, place TEXT NOT NULL)";
        home.connection().execute(table, ()).expect("cannot create the table of effects");
        home
    }

    /// Opens the home in this file.
    pub fn open(path: PathBuf, options: SqliteOptions) -> Self {
        let store = SqliteStore::open(&path, options).expect("cannot open the file");
        Self { store, path, interceptor: None, _folder: None }
    }

    /// Returns the same home for a process whose calls of the store are intercepted.
    #[must_use]
    pub fn intercepted(&self, interceptor: Arc<dyn Interceptor>) -> Self {
        let (store, path) = (self.store.clone(), self.path.clone());
        Self { store, path, interceptor: Some(interceptor), _folder: None }
    }

    /// Runs a closure in a transaction of the store.
    pub async fn transact<T: Send + 'static>(
        &self,
        call: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        intercept(self.interceptor.as_ref(), call, self.store.transaction(work)).await
    }

    fn connection(&self) -> Connection {
        let connection = Connection::open(&self.path).expect("cannot open the file");
        connection.busy_timeout(wait::LIMIT).expect("set");
        connection
    }
}

fn refused(error: rusqlite::Error) -> StoreError {
    StoreError::Database { verb: "effect", cause: error.into() }
}

fn insert(tx: &Transaction<'_>, run: Run, place: &str) -> StoreResult<()> {
    tx.execute(
        "INSERT INTO test_effect (job_id, token, place) VALUES (?1, ?2, ?3)",
        (run.job.0.as_bytes().as_slice(), run.token.0, place),
    )
    .map(drop)
    .map_err(refused)
}

#[async_trait]
impl Home for SqliteHome {
    fn store(&self) -> Arc<dyn Store> {
        let store = Arc::new(self.store.clone());
        match &self.interceptor {
            Some(interceptor) => Faulty::intercepted(store, interceptor.clone()),
            None => store,
        }
    }

    fn address(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    async fn migrate(&self) -> StoreResult<()> {
        self.store.migrate().await.map(drop)
    }

    async fn close(&self) {
        self.store.close().await;
    }

    async fn record(&self, run: Run, place: &str) -> StoreResult<()> {
        let place = place.to_owned();
        self.transact("record", move |tx| insert(tx, run, &place)).await
    }

    async fn record_with_success(&self, run: Run, place: &str) -> StoreResult<()> {
        let place = place.to_owned();
        self.transact("record_with_success", move |tx| {
            insert(tx, run, &place)?;
            milepost_sqlite::complete(tx, run, None)
        })
        .await
    }

    async fn effects(&self) -> Vec<Outcome> {
        let connection = self.connection();
        let mut rows = connection
            .prepare("SELECT job_id, token, place FROM test_effect ORDER BY job_id, token")
            .expect("prepared");
        let effects = rows.query_map((), |row| {
            let job: [u8; 16] = row.get(0)?;
            Ok(Outcome {
                job: JobId(Uuid::from_bytes(job)),
                token: RunToken(row.get(1)?),
                place: row.get(2)?,
            })
        });
        effects.expect("answered").collect::<Result<_, _>>().expect("read")
    }

    async fn notes(&self) -> Vec<(String, i64)> {
        let connection = self.connection();
        let mut query = connection.prepare("SELECT run, member FROM note").expect("prepared");
        let notes = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).expect("answered");
        notes.collect::<Result<_, _>>().expect("read")
    }

    async fn desk(&self) -> Desk {
        Desk::sqlite(self.store.clone())
    }

    async fn expire_leases(&self, but: WorkerId) {
        self.connection()
            .execute("UPDATE milepost_worker SET lease_expires_at_ms = 0 WHERE id <> ?1", (but.0,))
            .expect("expired");
    }

    async fn is_writable(&self) -> bool {
        let mut connection = self.connection();
        connection.busy_timeout(Duration::from_millis(500)).expect("set");
        connection.transaction_with_behavior(TransactionBehavior::Immediate).is_ok()
    }

    async fn tamper(&self, sql: &str) {
        self.connection().execute_batch(&own_names(sql)).expect(sql);
    }

    async fn count(&self, sql: &str) -> i64 {
        self.connection().query_row(&own_names(sql), (), |row| row.get(0)).expect(sql)
    }

    fn id(&self, job: JobId) -> String {
        format!("x'{}'", job.0.simple())
    }

    fn time(&self, column: &str) -> String {
        format!("{column}_ms")
    }

    fn ago(&self, age: Duration) -> String {
        format!("(unixepoch() - {}) * 1000", age.as_secs())
    }

    fn ahead(&self, by: Duration) -> String {
        format!("(unixepoch() + {}) * 1000", by.as_secs())
    }

    fn bulk_work(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
        command: Command<'_>,
    ) -> Result<Arc<dyn BulkWork>, InvalidBulk> {
        let effect = match command {
            Command::Sql(apply) => Effect::Sql(apply.to_owned()),
            Command::Children(template) => Effect::Handler(Arc::new(ChildJobs { template })),
            Command::Events(template) => Effect::Handler(Arc::new(ChildEvents { template })),
            Command::Operations => Effect::Handler(Arc::new(Operations)),
            Command::Function => Effect::Handler(Arc::new(Notes)),
        };
        Ok(Arc::new(SqlBulk::new(&self.store, definition, source, &names(key), effect)?))
    }

    fn intercept_work(&self, work: Arc<dyn BulkWork>) -> Arc<dyn BulkWork> {
        match &self.interceptor {
            Some(interceptor) => Arc::new(Intercepted { inner: work, interceptor: interceptor.clone() }),
            None => work,
        }
    }

    fn bulk_rows(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
    ) -> Result<Arc<dyn BulkWork>, InvalidBulk> {
        Ok(Arc::new(SqlBulk::new(&self.store, definition, source, &names(key), Effect::Elsewhere)?))
    }
}

/// Handler that records targets.
struct Notes;

impl ChunkHandler for Notes {
    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause> {
        let mut note = tx.prepare_cached("INSERT INTO note (run, member) VALUES (?1, ?2)")?;
        for id in ids(chunk)? {
            note.execute((chunk.origin.to_string(), id))?;
        }
        Ok(())
    }
}

/// Rewrites table names: SQLite has no schemas, so the prefix is part of the table name, and tables of users have none.
fn own_names(sql: &str) -> String {
    sql.replace("milepost.", "milepost_").replace("public.", "")
}
