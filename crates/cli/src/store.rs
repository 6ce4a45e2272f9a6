//! Opening the store that `--store` names. Nothing else in the command knows which database it is.

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
use milepost_core::schema::Migrated;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use percent_encoding::percent_decode_str;

use crate::{args, concealment, operator, output};

/// Where the jobs are. Shown without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress {
    /// A file.
    Sqlite(PathBuf),
    /// A server, as a URL.
    Postgres(String),
}

impl Default for StoreAddress {
    /// Where jobs are when nobody says so.
    fn default() -> Self {
        Self::Sqlite("milepost.db".into())
    }
}

impl StoreAddress {
    /// Whose SQL bulk jobs on it are written in.
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// The file, if it is one.
    fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }

    /// The passwords in the address.
    pub(crate) fn passwords(&self) -> Vec<String> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(url) => passwords(url),
        }
    }

    /// The address as it is given, with its password: for another process, not for people.
    pub(crate) fn reveal(&self) -> OsString {
        match self {
            Self::Sqlite(path) => {
                let mut address = OsString::from("sqlite:");
                address.push(path);
                address
            }
            Self::Postgres(url) => url.into(),
        }
    }
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: &str = "a store is given as sqlite:PATH or as postgres://USER:PASSWORD@HOST/DATABASE";
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let Some(path) = text.strip_prefix("sqlite:") else {
            return Err(format!("cannot use the store {:?}: {FORMS}", masked(text)));
        };
        match path.strip_prefix("//").unwrap_or(path) {
            "" => Err(format!("cannot use the store {text:?}: the path is missing; {FORMS}")),
            ":memory:" => {
                Err(format!("cannot use the store {text:?}: it would be gone when the command ends; {FORMS}"))
            }
            path if path.starts_with("file:") => Err(format!(
                "cannot use the store {text:?}: it is a URI of SQLite, whose options could turn locks off; give the path alone; {FORMS}"
            )),
            path => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&masked(url)),
        }
    }
}

/// The URL without its password, be it before the host or among the parameters.
///
/// A password may hold any character when somebody forgot to escape it, so everything up to the last `@`
/// counts as part of it. Where an `@` follows a `?` nobody can tell of which password it is: then all that may
/// be one is hidden. Rather too much is hidden than a piece too little.
fn masked(url: &str) -> String {
    let (scheme, rest) =
        url.split_once("://").map_or(("", url), |(scheme, rest)| (&url[..scheme.len() + 3], rest));
    let (place, parameters) =
        rest.split_once('?').map_or((rest, None), |(place, parameters)| (place, Some(parameters)));
    if parameters.is_some_and(|parameters| parameters.contains('@')) {
        let user = place.split_once(':').map_or(place.to_owned(), |(user, _)| format!("{user}:***"));
        return format!("{scheme}{user}?***");
    }
    let place = match place.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?.0, host)))
    {
        Some((user, host)) => format!("{user}:***@{host}"),
        None => place.to_owned(),
    };
    let parameters = parameters.map_or_else(String::new, |parameters| {
        let parameters: Vec<String> = parameters.split('&').map(masked_parameter).collect();
        format!("?{}", parameters.join("&"))
    });
    format!("{scheme}{place}{parameters}")
}

/// Returns the passwords of a URL, as they are written and decoded: of the login, and of parameters.
pub(crate) fn passwords(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let of_login = place.rsplit_once('@').and_then(|(login, _)| Some(login.split_once(':')?.1));
    let of_parameters = parameters.split('&').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.to_ascii_lowercase().contains("password").then_some(value)
    });
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    of_login.into_iter().chain(of_parameters).flat_map(|text| [text.to_owned(), decoded(text)]).collect()
}

fn masked_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

/// What a command wants of the store's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// They must be there, in this binary's version.
    MustFit,
    /// They are made when the store is empty.
    MadeWhenEmpty,
}

/// Opens the store and sees that its tables fit. It is used by the operator: what is changed through it is audited.
pub(crate) async fn open(address: &StoreAddress, schema: Schema) -> Result<Arc<dyn Store>> {
    operator::acting(open_database(address, schema).await?.store().as_ref())
}

/// The same, for what runs by itself, of which one can tell whose SQL it speaks.
pub(crate) async fn open_database(address: &StoreAddress, schema: Schema) -> Result<Database> {
    if let (StoreAddress::Sqlite(path), Schema::MustFit) = (address, schema)
        && !path.exists()
    {
        bail!("there is no store at {address}; `milepost migrate` makes one, and so does `milepost enqueue`");
    }
    let context = || format!("cannot use the store {address}");
    let database = connect(address).await.with_context(context)?;
    fit(database.tables(), address, schema).await?;
    Ok(database)
}

/// How long a process that works for itself waits for its store when it starts.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct StoreWait {
    /// How long to wait at the start for a store that cannot be reached
    #[arg(long, value_name = "DURATION", default_value = "1m", env = "MILEPOST_STORE_WAIT", value_parser = args::duration)]
    store_wait: Duration,
}

impl StoreWait {
    /// Opens a store as [`open_database`] does, which is created if it is empty. Tries again while it cannot be reached, as while the
    /// machine of the database starts.
    pub(crate) async fn open(self, address: &StoreAddress) -> Result<Database> {
        let begun = Instant::now();
        let mut pause = Duration::from_millis(250);
        loop {
            let error = match open_database(address, Schema::MadeWhenEmpty).await {
                Err(error) if is_unreachable(&error) => error,
                opened => {
                    address.file().inspect(|path| concealment::warn_of_readers(path));
                    return opened;
                }
            };
            if begun.elapsed() + pause > self.store_wait {
                return Err(error);
            }
            tracing::warn!(store = %address, error = format!("{error:#}"), "the store cannot be reached; trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<StoreError>()).any(StoreError::is_transient)
}

/// Sees that the tables of an open store fit.
pub(crate) async fn fit(tables: &dyn Tables, address: &StoreAddress, schema: Schema) -> Result<()> {
    let context = || format!("cannot use the store {address}");
    match (tables.check().await, schema) {
        (Ok(()), _) => {}
        (Err(StoreError::Schema(SchemaError::TooOld { found: 0, .. })), Schema::MadeWhenEmpty) => {
            let steps = tables.migrate().await.with_context(context)?;
            output::note(format_args!("made the store {address} (schema version {})", steps.to));
        }
        (Err(error), _) => return Err(error).with_context(context),
    }
    Ok(())
}

/// Brings the store's tables to this binary's version.
pub(crate) async fn migrate(address: &StoreAddress) -> Result<Migrated> {
    let context = || format!("cannot migrate the store {address}");
    let database = connect(address).await.with_context(context)?;
    database.tables().migrate().await.with_context(context)
}

/// An open store.
#[derive(Clone)]
pub(crate) enum Database {
    Postgres(PostgresStore),
    Sqlite(SqliteStore),
}

impl Database {
    /// The store's ports.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    /// How its connections are used, which is no port: stores differ in what connections they have.
    pub(crate) fn pools(&self) -> Vec<PoolView> {
        match self {
            Self::Postgres(store) => store.pools(),
            Self::Sqlite(store) => store.pools(),
        }
    }

    /// The upkeep of its tables, which is no port: only this command does it.
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

/// The upkeep of a store's tables.
#[async_trait]
pub(crate) trait Tables: Send + Sync {
    /// Says how they differ from what this binary needs.
    async fn check(&self) -> StoreResult<()>;
    /// Brings them to this binary's version.
    async fn migrate(&self) -> StoreResult<Migrated>;
}

#[async_trait]
impl Tables for PostgresStore {
    async fn check(&self) -> StoreResult<()> {
        self.check_schema().await
    }

    async fn migrate(&self) -> StoreResult<Migrated> {
        Self::migrate(self).await
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
        for text in ["sqlite:jobs.db", "sqlite:/var/jobs.db", "postgres://ada:s3cret@db/app"] {
            let address: StoreAddress = text.parse().unwrap();
            assert_eq!(address.reveal(), text);
        }
    }

    #[test]
    fn passwords_are_never_shown() {
        for url in [
            "postgres://ada:s3cret@db/app",
            "postgres://ada:s3cret@db:5432/app?application_name=x",
            "postgres://ada:p@ss/s3cret@db/app",
            "postgres://db/app?user=ada&password=s3cret",
            "postgres://db/app?sslpassword=s3cret&a=b",
            "mysql://ada:s3cret@db/app",
            "ada:s3cret@db/app",
        ] {
            let shown = masked(url);
            assert!(!shown.contains("s3cret") && shown.contains("***"), "{shown}");
            assert!(shown.contains("db"), "{shown}");
        }
        for url in [
            "postgres://db:5432/app?user=ada&password=s3cr@t-s3cret",
            "postgres://ada:x@db/app?password=s3cr@t-s3cret",
            "postgres://ada:x?s3cret@db/app",
            "postgres://ada:s3cret?x@db/app?a=b",
            "postgres://ada:s3@s3cret?x@db/app",
            "postgres://db/app?password=s3cret@",
        ] {
            let shown = masked(url);
            assert!(!shown.contains("s3") && shown.contains("***"), "{shown}");
        }
        assert_eq!(masked("postgres://ada:x@db/app"), "postgres://ada:***@db/app");
        assert_eq!(masked("postgres://ada:x@db/app?a=b"), "postgres://ada:***@db/app?a=b");
        assert_eq!(masked("postgres://ada@db/app"), "postgres://ada@db/app");
    }
}
