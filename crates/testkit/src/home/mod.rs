//! A store with a table of effects, shared with worker processes.

mod postgres;
mod sqlite;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::{BadTarget, Bulk, Chunk, Definition, EventTemplate, InvalidBulk};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::job::NewJob;
use milepost_core::port::{BulkWork, Store, StoreResult};
use milepost_postgres::PostgresOptions;
use milepost_sqlite::SqliteOptions;
use serde::Deserialize;

use crate::inbox::Desk;

pub use postgres::PostgresHome;
pub use sqlite::SqliteHome;

/// An external effect of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The job.
    pub job: JobId,
    /// The run of the job.
    pub token: RunToken,
    /// A word that is recorded with the effect.
    pub place: String,
}

/// The work for a chunk.
#[derive(Clone, Debug)]
pub enum Command<'a> {
    /// A statement.
    Sql(&'a str),
    /// A job for each target.
    Children(NewJob),
    /// An event for each target.
    Events(EventTemplate),
    /// A function that records each target's `id` in the chunk's transaction, and rejects targets named `bad`.
    Function,
    /// Operations on one job.
    Operations,
}

/// A target of [`Command::Function`].
#[derive(Debug, Deserialize)]
struct Member {
    id: i64,
    name: String,
}

/// Returns the ids of a chunk, or an error if it has a bad target.
fn ids(chunk: &Chunk<'_>) -> Result<Vec<i64>, BadTarget> {
    let id = |member: &Member| match member.name.as_str() {
        "bad" => Err(BadTarget { code: "bad".to_owned(), message: format!("{} is bad", member.id) }),
        _ => Ok(member.id),
    };
    chunk.rows::<Member>()?.iter().map(id).collect()
}

/// A store, the effects of its jobs, and direct access of tests to its tables.
#[async_trait]
pub trait Home: Send + Sync {
    /// Returns the store.
    fn store(&self) -> Arc<dyn Store>;

    /// Returns the address for [`open`] in a worker process.
    fn address(&self) -> String;

    /// Migrates the store to the version of this process.
    async fn migrate(&self) -> StoreResult<()>;

    /// Closes the store, if it is a file.
    async fn close(&self) {}

    /// Records an effect in a separate transaction.
    async fn record(&self, run: Run, place: &str) -> StoreResult<()>;

    /// Records an effect and completes the run in one commit.
    async fn record_with_success(&self, run: Run, place: &str) -> StoreResult<()>;

    /// Returns all effects, ordered by job and token. Duplicates are not prevented, because tests must detect them.
    async fn effects(&self) -> Vec<Effect>;

    /// Returns the run and the target of each effect of [`Command::Function`].
    async fn notes(&self) -> Vec<(String, i64)>;

    /// Returns the transactions of consumers on the store's database.
    async fn desk(&self) -> Desk;

    /// Expires the leases of all workers but this one in the store. The workers do not know it, as after a pause during which their clocks stopped.
    async fn expire_leases(&self, but: WorkerId);

    /// Returns whether other processes can write now: a process that is stopped inside a write transaction on a SQLite file holds the lock.
    async fn is_writable(&self) -> bool;

    /// Runs statements directly on the tables (`milepost.job`, …), bypassing the store.
    async fn tamper(&self, sql: &str);

    /// Returns the number that a query yields.
    async fn count(&self, sql: &str) -> i64;

    /// Returns the id of a job as a literal of this store's SQL.
    fn id(&self, job: JobId) -> String;

    /// Returns the name of a time column, from its name without a unit.
    fn time(&self, column: &str) -> String;

    /// Returns a time in the past as an expression of this store's SQL.
    fn ago(&self, age: Duration) -> String;

    /// Returns a time in the future as an expression of this store's SQL.
    fn ahead(&self, by: Duration) -> String;

    /// Returns a bulk job on tables of the store's database.
    fn bulk(
        &self,
        definition: Definition,
        source: &str,
        key: &[&str],
        apply: &str,
    ) -> Result<Bulk, InvalidBulk> {
        let work = self.bulk_work(&definition, source, key, Command::Sql(apply))?;
        Ok(Bulk::new(definition, work))
    }

    /// Returns the work of a bulk job.
    fn bulk_work(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
        command: Command<'_>,
    ) -> Result<Arc<dyn BulkWork>, InvalidBulk>;

    /// Returns the same work, with the faults of the home's process, if it has any.
    fn intercept_work(&self, work: Arc<dyn BulkWork>) -> Arc<dyn BulkWork> {
        work
    }

    /// Returns the targets in tables of the store's database, for work that is done elsewhere.
    fn bulk_rows(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
    ) -> Result<Arc<dyn BulkWork>, InvalidBulk>;
}

/// Creates a home at this address: in a new file, or in an empty database.
pub async fn create(address: &str) -> Arc<dyn Home> {
    match address.strip_prefix("sqlite:") {
        Some(path) => Arc::new(SqliteHome::create_at(PathBuf::from(path), SqliteOptions::default()).await),
        None => Arc::new(PostgresHome::create_at(address).await),
    }
}

/// Opens a home at this address. The options apply to a store on PostgreSQL.
pub async fn open(address: &str, options: PostgresOptions) -> Arc<dyn Home> {
    match address.strip_prefix("sqlite:") {
        Some(path) => Arc::new(SqliteHome::open(PathBuf::from(path), SqliteOptions::default())),
        None => Arc::new(PostgresHome::open(address, options).await),
    }
}

/// As [`open`], without a panic if the server does not answer.
pub async fn try_open(address: &str, options: PostgresOptions) -> StoreResult<Arc<dyn Home>> {
    if address.starts_with("sqlite:") {
        return Ok(open(address, options).await);
    }
    Ok(Arc::new(PostgresHome::try_open(address, options).await?))
}

fn names(key: &[&str]) -> Vec<String> {
    key.iter().map(|&name| name.to_owned()).collect()
}

/// Asserts that every one of these jobs had its effect exactly once.
pub async fn assert_once_each(home: &dyn Home, jobs: &[JobId]) {
    let effects = home.effects().await;
    for &job in jobs {
        let tokens: Vec<_> = effects.iter().filter(|e| e.job == job).map(|e| e.token).collect();
        assert_eq!(tokens.len(), 1, "job {job} has effects of the runs {tokens:?}");
    }
}

/// Returns the tokens of the runs in which a job had its effect.
pub async fn tokens(home: &dyn Home, job: JobId) -> Vec<RunToken> {
    home.effects().await.into_iter().filter(|effect| effect.job == job).map(|effect| effect.token).collect()
}

/// Generates two tests from each function: on a home in a SQLite file, and on one in PostgreSQL. The function receives the value that `$set` creates
/// from the home.
#[allow(clippy::crate_in_macro_def, reason = "the topics are modules of the test")]
#[macro_export]
macro_rules! on_each_home {
    ($set:path => $($topic:ident::$test:ident,)+) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$topic::$test($set($crate::home::SqliteHome::fresh().await).await).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$topic::$test($set($crate::home::PostgresHome::fresh().await).await).await;
            })+
        }
    };
    ($set:path => $($test:ident,)+) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($set($crate::home::SqliteHome::fresh().await).await).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test($set($crate::home::PostgresHome::fresh().await).await).await;
            })+
        }
    };
}
