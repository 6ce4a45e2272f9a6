//! The demo's notification table, and queries about the results of its jobs.

mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use milepost::{JobError, Run, Store};
use milepost_cli_support::store::StoreAddress;
use uuid::Uuid;

use postgres::PostgresLedger;
use sqlite::SqliteLedger;

/// The identification of one demo's jobs and notifications in the store.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The queue of its jobs, and the name of its run.
    pub(super) queue: String,
    /// None of its jobs has a smaller id.
    pub(super) first_id: Uuid,
}

impl Scope {
    /// Creates a unique scope.
    pub(super) fn new() -> Self {
        let first_id = Uuid::now_v7();
        let random = first_id.as_u128() & 0xffff_ffff;
        Self { queue: format!("demo-{random:08x}"), first_id }
    }

    /// Returns the scope of a queue for a worker process, which does not know the first id.
    pub(super) fn of(queue: &str) -> Self {
        Self { queue: queue.to_owned(), first_id: Uuid::nil() }
    }

    /// Returns the key of a place's job.
    pub(super) fn key(&self, place: u32) -> String {
        format!("{}/{place}", self.queue)
    }
}

/// The effect of a job: a notification of a place.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    pub(super) queue: Arc<str>,
    pub(super) place: u32,
    pub(super) attempt: u32,
}

/// The final state of a demo in the database.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) tally: Tally,
    /// Places whose jobs are dead letters.
    pub(super) dead_letters: BTreeSet<u32>,
    /// Places whose jobs were retried, after a failure or a lost lease.
    pub(super) retried: BTreeSet<u32>,
    /// The number of notifications of each place.
    pub(super) notifications: BTreeMap<u32, u64>,
}

/// Counts of jobs and of their history entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) jobs: u64,
    /// Jobs that neither ended nor became dead letters: those left behind, and those lost.
    pub(super) open: u64,
    pub(super) attempts: u64,
    /// Attempts that ended.
    pub(super) ends: u64,
    pub(super) successes: u64,
    /// Attempts that failed and were retried.
    pub(super) retries: u64,
    /// Attempts reclaimed from a dead worker.
    pub(super) rescued: u64,
}

/// A store with the demo's table.
#[async_trait]
pub(super) trait Ledger: Send + Sync {
    /// Returns the store.
    fn store(&self) -> Arc<dyn Store>;

    /// Creates the tables of an empty store, and the demo's table.
    async fn lay(&self, address: &StoreAddress) -> Result<()>;

    /// Writes the notification and completes the job, in one transaction.
    async fn notify(&self, run: Run, notification: Notification) -> Result<(), JobError>;

    /// Returns the approximate number of notifications of all runs.
    async fn written(&self) -> Result<i64>;

    /// Counts the jobs of the queue that have not ended.
    async fn open_jobs(&self, queue: &str) -> Result<i64>;

    /// Reads everything that is checked.
    async fn facts(&self, scope: &Scope) -> Result<Facts>;
}

/// Opens the store.
pub(super) async fn open(address: &StoreAddress) -> Result<Arc<dyn Ledger>> {
    let ledger: Arc<dyn Ledger> = match address {
        StoreAddress::Sqlite(path) => Arc::new(SqliteLedger::open(path)?),
        StoreAddress::Postgres(url) => Arc::new(PostgresLedger::connect(url).await?),
    };
    Ok(ledger)
}

/// Returns the place in a key that [`Scope::key`] created.
fn place_of(key: &str) -> Result<u32> {
    let place = key.rsplit('/').next().and_then(|place| place.parse().ok());
    place.with_context(|| format!("the store already has a job of this demo with the key {key:?}"))
}
