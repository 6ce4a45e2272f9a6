//! Where the demo writes its notifications and reads what became of them.

mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use milepost::{JobError, Run, Store};
use uuid::Uuid;

use crate::store::StoreAddress;
use postgres::PostgresLedger;
use sqlite::SqliteLedger;

/// What tells one demo's jobs and notifications from all others in the store.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The queue of its jobs, and the name of its run.
    pub(super) queue: String,
    /// None of its jobs has a smaller id.
    pub(super) first_id: Uuid,
}

impl Scope {
    /// One that nobody else has.
    pub(super) fn new() -> Self {
        let first_id = Uuid::now_v7();
        let random = first_id.as_u128() & 0xffff_ffff;
        Self { queue: format!("demo-{random:08x}"), first_id }
    }

    /// The one of a queue, as far as a worker process knows it.
    pub(super) fn of(queue: &str) -> Self {
        Self { queue: queue.to_owned(), first_id: Uuid::nil() }
    }

    /// The key of a place's job.
    pub(super) fn key(&self, place: u32) -> String {
        format!("{}/{place}", self.queue)
    }
}

/// The effect of a job: somebody at the place was told something.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    pub(super) queue: Arc<str>,
    pub(super) place: u32,
    pub(super) attempt: u32,
}

/// What the database says about a demo when it is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) tally: Tally,
    /// Places whose jobs are dead letters.
    pub(super) dead_letters: BTreeSet<u32>,
    /// Places whose jobs were tried again, after a failure or a lost lease.
    pub(super) retried: BTreeSet<u32>,
    /// How many notifications each place got.
    pub(super) notifications: BTreeMap<u32, u64>,
}

/// Counts of jobs and of what their histories say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) jobs: u64,
    /// Jobs that neither ended nor are dead letters: those that are left behind, and those that are lost.
    pub(super) open: u64,
    pub(super) attempts: u64,
    /// Attempts that ended.
    pub(super) ends: u64,
    pub(super) successes: u64,
    /// Attempts that failed with another one to come.
    pub(super) retries: u64,
    /// Attempts taken back from a dead worker.
    pub(super) rescued: u64,
}

/// A store and the demo's own table in it.
#[async_trait]
pub(super) trait Ledger: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Makes the store's tables when it is empty, and the demo's.
    async fn lay(&self, address: &StoreAddress) -> Result<()>;

    /// Writes the notification and completes the job, in one transaction.
    async fn notify(&self, run: Run, notification: Notification) -> Result<(), JobError>;

    /// About how many notifications there are, of all runs.
    async fn written(&self) -> Result<i64>;

    /// How many jobs of the queue have not ended.
    async fn open_jobs(&self, queue: &str) -> Result<i64>;

    /// Everything that is verified.
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

/// The place in a key that [`Scope::key`] made.
fn place_of(key: &str) -> Result<u32> {
    let place = key.rsplit('/').next().and_then(|place| place.parse().ok());
    place.with_context(|| format!("the store has a job of this demo with the key {key:?}"))
}
