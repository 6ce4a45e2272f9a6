//! Opening the store that `--store` names. Most other code in this crate does not depend on the type of the database.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use clap::Args;
use milepost_core::bulk::sql::Dialect;
use milepost_core::error::{SchemaError, StoreError};
use milepost_core::pool::PoolView;
use milepost_core::port::{Store, StoreResult};
use milepost_core::schema::{Migrated, MigrationPlan};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};

use crate::passwords::{masked, passwords};
use crate::{operator, output, parsers, process_secrets};

/// The address of the store. Displayed without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// The path of a SQLite file.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL server.
    Postgres(String),
}

impl Default for StoreAddress {
    /// Returns the default address.
    fn default() -> Self {
        Self::Sqlite("milepost.db".into())
    }
}

impl StoreAddress {
    /// Returns the SQL dialect of bulk jobs in this store.
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the path if the store is a file.
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }

    /// Returns the passwords in the address.
    pub fn passwords(&self) -> Vec<String> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(url) => passwords(url),
        }
    }

    /// Returns the address with its password. It is for another process and must not be displayed.
    pub fn reveal(&self) -> OsString {
        match self {
            Self::Sqlite(path) => {
                let mut address = OsString::from(sqlite_prefix(path));
                address.push(path);
                address
            }
            Self::Postgres(url) => url.into(),
        }
    }
}

/// Returns the prefix of the address of a SQLite file. `sqlite://` is read as `sqlite:`, so a path that begins with two slashes is written with `sqlite://`.
fn sqlite_prefix(path: &Path) -> &'static str {
    if path.as_os_str().as_encoded_bytes().starts_with(b"//") { "sqlite://" } else { "sqlite:" }
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "give a store as sqlite:PATH or as postgres://USER:PASSWORD@HOST/DATABASE";
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let Some(path) = text.strip_prefix("sqlite:") else {
            return Err(format!("cannot use the store {:?}: {FORMS}", masked(text)));
        };
        match path.strip_prefix("//").unwrap_or(path) {
            "" => Err(format!("cannot use the store {text:?}: the path is missing; {FORMS}")),
            ":memory:" => Err(format!(
                "cannot use the store {text:?}: it would disappear when the command ends; {FORMS}"
            )),
            path if path.contains("://") => Err(format!(
                "cannot use the store {:?}: it is the URL of another store; {FORMS}",
                masked(text)
            )),
            path if path.starts_with("file:") => Err(format!(
                "cannot use the store {text:?}: it is a URI of SQLite, whose options could disable locks; give only the path; {FORMS}"
            )),
            path => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}{}", sqlite_prefix(path), path.display()),
            Self::Postgres(url) => f.write_str(&masked(url)),
        }
    }
}

/// The requirements of a command on the store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The tables must exist, in the version of this binary.
    MustFit,
    /// The tables are created if the store is empty.
    MadeWhenEmpty,
}

/// Opens the store for the operator and checks its tables. Changes through it are audited.
pub async fn open(address: &StoreAddress, schema: Schema) -> Result<Arc<dyn Store>> {
    operator::acting(open_database(address, schema).await?.store().as_ref())
}

/// Does the same for processes that act without an operator. The type of the database is known.
pub async fn open_database(address: &StoreAddress, schema: Schema) -> Result<Database> {
    if let (StoreAddress::Sqlite(path), Schema::MustFit) = (address, schema)
        && !path.exists()
    {
        bail!("there is no store at {address}; `milepost migrate` or `milepost enqueue` creates one");
    }
    let context = || format!("cannot use the store {address}");
    let database = connect(address).await.with_context(context)?;
    fit(database.tables(), address, schema).await?;
    Ok(database)
}

/// How long a process that works for itself waits for its store when it starts. The time counts for each step of the start.
#[derive(Clone, Copy, Debug, Args)]
pub struct StoreWait {
    /// How long to wait at the start if the store cannot be reached
    #[arg(long, value_name = "DURATION", default_value = "1m", env = "MILEPOST_STORE_WAIT", value_parser = parsers::duration)]
    store_wait: Duration,
}

impl StoreWait {
    /// Opens a store like [`open_database`] and creates it if it is empty. Retries while the store is unreachable, for example while the
    /// machine of the database starts.
    pub async fn open(self, address: &StoreAddress) -> Result<Database> {
        let opened =
            self.until_reachable(address, async || open_database(address, Schema::MadeWhenEmpty).await).await;
        address.file().inspect(|path| process_secrets::warn_of_readers(path));
        opened
    }

    /// Repeats a step of the start while the store is unreachable or accepts no changes, for example because its disk is full.
    pub async fn until_reachable<T>(
        self,
        address: &StoreAddress,
        mut step: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(250);
        loop {
            let error = match step().await {
                Err(error) if is_unreachable(&error) => error,
                done => return done,
            };
            let left = self.store_wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(error);
            }
            tracing::warn!(store = %address, error = format!("{error:#}"), "the store cannot be reached; trying again");
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }
}

/// Returns whether the store could not be reached, so that a later attempt may succeed.
pub fn is_unreachable(error: &anyhow::Error) -> bool {
    store_errors(error).any(|error| matches!(error, StoreError::Unavailable { .. }))
}

/// Returns whether an open transaction of another program held what the call needs.
pub fn is_held(error: &anyhow::Error) -> bool {
    store_errors(error).any(|error| matches!(error, StoreError::Held { .. }))
}

fn store_errors(error: &anyhow::Error) -> impl Iterator<Item = &StoreError> {
    error.chain().filter_map(|cause| cause.downcast_ref())
}

/// Checks the tables of an open store.
pub async fn fit(tables: &dyn Tables, address: &StoreAddress, schema: Schema) -> Result<()> {
    let context = || format!("cannot use the store {address}");
    match (tables.check().await, schema) {
        (Ok(()), _) => {}
        (Err(StoreError::Schema(SchemaError::TooOld { found: 0, .. })), Schema::MadeWhenEmpty) => {
            let steps = tables.migrate().await.with_context(context)?;
            output::note(format_args!("created the store {address} (schema version {})", steps.to));
        }
        (Err(error), _) => return Err(error).with_context(context),
    }
    Ok(())
}

/// Migrates the store's tables to the version of this binary.
pub async fn migrate(address: &StoreAddress) -> Result<Migrated> {
    let context = || format!("cannot migrate the store {address}");
    let database = connect(address).await.with_context(context)?;
    database.tables().migrate().await.with_context(context)
}

/// Returns what a migration of the store would do. An SQLite file that does not exist is not created.
pub async fn plan_migration(address: &StoreAddress) -> Result<MigrationPlan> {
    let context = || format!("cannot plan the migration of the store {address}");
    if let StoreAddress::Sqlite(path) = address
        && !path.exists()
    {
        return milepost_sqlite::plan_for_new_file().with_context(context);
    }
    let database = connect(address).await.with_context(context)?;
    database.tables().plan().await.with_context(context)
}

/// An open store.
#[derive(Clone)]
pub enum Database {
    /// A PostgreSQL database.
    Postgres(PostgresStore),
    /// A SQLite file.
    Sqlite(SqliteStore),
}

impl Database {
    /// Returns the store's ports.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    /// Returns the SQL dialect of bulk jobs in this store.
    pub const fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) => Dialect::Postgres,
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// Returns the usage of its connection pools. This is not a port, because stores have different connections.
    pub fn pools(&self) -> Vec<PoolView> {
        match self {
            Self::Postgres(store) => store.pools(),
            Self::Sqlite(store) => store.pools(),
        }
    }

    /// Returns the maintenance of its tables. This is not a port, because only this command uses it.
    fn tables(&self) -> &dyn Tables {
        match self {
            Self::Postgres(store) => store,
            Self::Sqlite(store) => store,
        }
    }
}

async fn connect(address: &StoreAddress) -> StoreResult<Database> {
    match address {
        StoreAddress::Postgres(url) => {
            PostgresStore::connect(url, PostgresOptions::default()).await.map(Database::Postgres)
        }
        StoreAddress::Sqlite(path) => SqliteStore::open(path, SqliteOptions::default()).map(Database::Sqlite),
    }
}

/// The maintenance of a store's tables.
#[async_trait]
pub trait Tables: Send + Sync {
    /// Checks that the tables have the version of this binary; the error describes the difference.
    async fn check(&self) -> StoreResult<()>;
    /// Migrates the tables to the version of this binary.
    async fn migrate(&self) -> StoreResult<Migrated>;
    /// Returns what a migration would do.
    async fn plan(&self) -> StoreResult<MigrationPlan>;
}

#[async_trait]
impl Tables for PostgresStore {
    async fn check(&self) -> StoreResult<()> {
        self.check_schema().await
    }

    async fn migrate(&self) -> StoreResult<Migrated> {
        Self::migrate(self).await
    }

    async fn plan(&self) -> StoreResult<MigrationPlan> {
        self.plan_migration().await
    }
}

#[async_trait]
impl Tables for SqliteStore {
    async fn check(&self) -> StoreResult<()> {
        self.check_schema().await
    }

    async fn migrate(&self) -> StoreResult<Migrated> {
        Self::migrate(self).await
    }

    async fn plan(&self) -> StoreResult<MigrationPlan> {
        self.plan_migration().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file_or_a_server() {
        let file = |path: &str| Ok(StoreAddress::Sqlite(path.into()));
        assert_eq!("sqlite:jobs.db".parse(), file("jobs.db"));
        assert_eq!("sqlite:///var/jobs.db".parse(), file("/var/jobs.db"));
        let url = "postgresql://db/app";
        assert_eq!(url.parse(), Ok(StoreAddress::Postgres(url.to_owned())));
        for bad in ["", "jobs.db", "mysql://h/d", "sqlite:", "sqlite::memory:"] {
            let why = bad.parse::<StoreAddress>().unwrap_err();
            assert!(why.contains("sqlite:PATH") && why.contains("postgres://"), "{why}");
        }
    }

    #[test]
    fn an_address_survives_being_passed_on() {
        for text in [
            "sqlite:jobs.db",
            "sqlite:/var/jobs.db",
            "sqlite:////srv/jobs.db",
            "postgres://ada:s3cret@db/app",
        ] {
            let address: StoreAddress = text.parse().unwrap();
            assert_eq!(address.reveal(), text);
        }
    }
}
