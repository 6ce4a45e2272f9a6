//! A store with a table of effects beside it, to be shared with worker processes.

mod postgres;
mod sqlite;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::{BadTarget, Bulk, Chunk, Definition, EventTemplate, InvalidBulk};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRows, BulkWork, Store, StoreResult};
use milepost_postgres::WakeMode;
use serde::Deserialize;

pub use postgres::PostgresHome;
pub use sqlite::SqliteHome;

/// What a job did on the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Which job.
    pub job: JobId,
    /// In which of its runs.
    pub token: RunToken,
    /// A word that stands beside it.
    pub place: String,
}

/// What is done to a chunk.
#[derive(Clone, Debug)]
pub enum Deed<'a> {
    /// A statement.
    Sql(&'a str),
    /// A job for each target.
    Children(NewJob),
    /// An event for each target.
    Events(EventTemplate),
    /// A function that notes each target's `id` in the chunk's transaction, and takes those named `bad` for bad.
    Function,
    /// What operators do to one job.
    Operations,
}

/// A target of [`Deed::Function`].
#[derive(Debug, Deserialize)]
struct Member {
    id: i64,
    name: String,
}

/// The ids of a chunk, unless it has a bad target.
fn ids(chunk: &Chunk<'_>) -> Result<Vec<i64>, BadTarget> {
    let id = |member: &Member| match member.name.as_str() {
        "bad" => Err(BadTarget { code: "bad".to_owned(), message: format!("{} is bad", member.id) }),
        _ => Ok(member.id),
    };
    chunk.rows::<Member>()?.iter().map(id).collect()
}

/// A store, the effects of its jobs, and what tests do behind its back.
#[async_trait]
pub trait Home: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// What a worker process is told, to be given to [`open`].
    fn address(&self) -> String;

    /// Records an effect in a transaction of its own.
    async fn record(&self, run: Run, place: &str) -> StoreResult<()>;

    /// Records an effect and completes the run, as one commit.
    async fn record_with_success(&self, run: Run, place: &str) -> StoreResult<()>;

    /// All effects, in the order of jobs and tokens. Nothing forbids doubled ones: they must be seen.
    async fn effects(&self) -> Vec<Effect>;

    /// Makes the store think that the leases of all workers but this one have run out. The workers do not
    /// know: as after a pause during which their own clocks stood still.
    async fn expire_leases(&self, but: WorkerId);

    /// Whether others can write now: a process stopped inside a write transaction on a SQLite file holds it.
    async fn is_writable(&self) -> bool;

    /// Runs statements on the tables (`milepost.job`, …) behind the store's back.
    async fn tamper(&self, sql: &str);

    /// The number that a statement answers.
    async fn count(&self, sql: &str) -> i64;

    /// A job's id as this store's SQL writes it.
    fn id(&self, job: JobId) -> String;

    /// A column of times, by its name without a unit.
    fn time(&self, column: &str) -> String;

    /// A time in the past as this store's SQL writes it.
    fn ago(&self, age: Duration) -> String;

    /// A time in the future as this store's SQL writes it.
    fn ahead(&self, by: Duration) -> String;

    /// A bulk job on tables of the store's own database.
    fn bulk(
        &self,
        definition: Definition,
        source: &str,
        key: &[&str],
        apply: &str,
    ) -> Result<Bulk, InvalidBulk> {
        let work = self.bulk_work(&definition, source, key, Deed::Sql(apply))?;
        Ok(Bulk::new(definition, work))
    }

    /// What is done to the targets of a bulk job.
    fn bulk_work(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
        deed: Deed<'_>,
    ) -> Result<Arc<dyn BulkWork>, InvalidBulk>;

    /// Targets in tables of the store's own database, for work that is done elsewhere.
    fn bulk_rows(
        &self,
        definition: &Definition,
        source: &str,
        key: &[&str],
    ) -> Result<Arc<dyn BulkRows>, InvalidBulk>;
}

/// Opens the home whose address another process was told, and how it hears of what others do.
pub async fn open(address: &str, wake: WakeMode) -> Arc<dyn Home> {
    match address.strip_prefix("sqlite:") {
        Some(path) => Arc::new(SqliteHome::open(PathBuf::from(path))),
        None => Arc::new(PostgresHome::open(address, wake).await),
    }
}

fn names(key: &[&str]) -> Vec<String> {
    key.iter().map(|&name| name.to_owned()).collect()
}

/// Asserts that every one of these jobs had its effect exactly once.
pub async fn assert_once_each(home: &dyn Home, jobs: &[JobId]) {
    let effects = home.effects().await;
    for &job in jobs {
        let tokens: Vec<_> = effects.iter().filter(|e| e.job == job).map(|e| e.token).collect();
        assert_eq!(tokens.len(), 1, "job {job} had its effect under {tokens:?}");
    }
}

/// The tokens under which a job had its effect.
pub async fn tokens(home: &dyn Home, job: JobId) -> Vec<RunToken> {
    home.effects().await.into_iter().filter(|effect| effect.job == job).map(|effect| effect.token).collect()
}

/// Makes two tests of each: on a home in a SQLite file, and on one in PostgreSQL. A test takes what `$set` makes of
/// its home.
#[allow(clippy::crate_in_macro_def, reason = "topics are modules of the test")]
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
