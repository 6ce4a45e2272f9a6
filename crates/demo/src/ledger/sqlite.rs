//! The demo's ledger in a SQLite file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use milepost::{JobError, Run, Store};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, OpenFlags, Row};

use super::{Facts, Ledger, Notification, Scope, Tally, place_of};

pub(super) struct SqliteLedger {
    store: SqliteStore,
    path: PathBuf,
}

impl SqliteLedger {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let store = SqliteStore::open(path, SqliteOptions::default())?;
        Ok(Self { store, path: path.to_owned() })
    }

    /// Runs a query on a separate connection; the store's connections are reserved for its own statements.
    async fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.path.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            connection.busy_timeout(milepost_sqlite::BUSY_TIMEOUT_DEFAULT)?;
            ask(&connection)
        });
        asking.await?.with_context(|| format!("cannot read {}", self.path.display()))
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn lay(&self, address: &StoreAddress) -> Result<()> {
        store::fit(&self.store, address, Schema::MadeWhenEmpty).await?;
        let made =
            self.store.transaction(|tx| anyhow::Ok(tx.execute_batch(include_str!("sqlite/create.sql"))?));
        made.await.with_context(|| format!("cannot create the demo's table in {address}"))
    }

    async fn notify(&self, run: Run, notification: Notification) -> Result<(), JobError> {
        let Notification { queue, place, attempt } = notification;
        let both = self.store.transaction(move |tx| {
            let job = run.job.0;
            tx.prepare_cached(include_str!("sqlite/notify.sql"))?.execute((
                &*queue,
                place,
                job.as_bytes().as_slice(),
                attempt,
            ))?;
            Ok::<_, JobError>(milepost_sqlite::complete(tx, run, None)?)
        });
        both.await
    }

    async fn written(&self) -> Result<i64> {
        self.read(|db| Ok(db.query_row(include_str!("sqlite/written.sql"), (), |row| row.get(0))?)).await
    }

    async fn open_jobs(&self, queue: &str) -> Result<i64> {
        let queue = queue.to_owned();
        let sql = include_str!("sqlite/open_jobs.sql");
        self.read(move |db| Ok(db.query_row(sql, (queue,), |row| row.get(0))?)).await
    }

    async fn facts(&self, scope: &Scope) -> Result<Facts> {
        let scope = scope.clone();
        self.read(move |db| read_facts(db, &scope)).await
    }
}

fn read_facts(db: &Connection, scope: &Scope) -> Result<Facts> {
    let own = || (&scope.queue, scope.first_id.as_bytes().as_slice());
    let places = |sql: &str| {
        let mut keys = db.prepare(sql)?;
        let keys = keys.query_map(own(), |row| row.get::<_, String>(0))?;
        keys.map(|key| place_of(&key?)).collect::<Result<_>>()
    };
    let mut notified = db.prepare(include_str!("sqlite/notified.sql"))?;
    let notified = notified
        .query_map((&scope.queue,), |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(Facts {
        tally: db.query_row(include_str!("sqlite/tally.sql"), own(), tally)?,
        dead_letters: places(include_str!("sqlite/dead_letters.sql"))?,
        retried: places(include_str!("sqlite/retried.sql"))?,
        notifications: notified.collect::<rusqlite::Result<_>>()?,
    })
}

fn tally(row: &Row<'_>) -> rusqlite::Result<Tally> {
    let count = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    Ok(Tally {
        jobs: count("jobs")?,
        open: count("open")?,
        attempts: count("attempts")?,
        ends: count("ends")?,
        successes: count("successes")?,
        retries: count("retries")?,
        rescued: count("rescued")?,
    })
}
