//! The store under load, on the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::server::Server;
use rusqlite::Connection as File;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection, Row};

/// How long the network is cut.
const CUT_FOR: Duration = Duration::from_millis(500);
/// Ends all connections of clients but those of the soak.
const KILL_BACKENDS: &str = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and application_name <> 'soak'";
/// The size of each table and index in MiB, and the dead rows of each table in thousands.
const SIZES: &str = "
    select case c.relkind when 'i' then 'index ' else 'table ' end || c.relname as name, pg_relation_size(c.oid) / 1048576.0::float8 as value
    from pg_class c where c.relnamespace = 'milepost'::regnamespace and c.relkind in ('r', 'i')
    union all
    select 'dead rows of ' || relname, n_dead_tup / 1000.0::float8 from pg_stat_user_tables where schemaname = 'milepost'
    union all
    select 'sessions', count(*)::float8 from pg_stat_activity where backend_type = 'client backend'";
/// The same for a file, and its free pages.
const SIZES_OF_FILE: &str = "
    SELECT CASE WHEN s.type = 'index' THEN 'index ' ELSE 'table ' END || d.name, sum(d.pgsize) / 1048576.0
    FROM dbstat d JOIN sqlite_schema s ON s.name = d.name WHERE d.aggregate = TRUE AND d.name LIKE 'milepost_%' GROUP BY 1
    UNION ALL SELECT 'free pages', freelist_count * page_size / 1048576.0 FROM pragma_freelist_count, pragma_page_size";

/// The kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// A SQLite file
    Sqlite,
    /// A PostgreSQL server of its own
    Postgres,
}

/// The store.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    /// Its address for the programs.
    pub(crate) address: String,
    kind: Kind,
}

enum Kind {
    File(PathBuf),
    Server { server: Server, proxy: Proxy },
}

impl Place {
    /// Creates a store below a folder.
    pub(crate) async fn create(kind: StoreKind, folder: &Path) -> Result<Self> {
        match kind {
            StoreKind::Sqlite => {
                let path = folder.join("jobs.db");
                let store = SqliteStore::open(&path, SqliteOptions::default())?;
                store.migrate().await?;
                let address = format!("sqlite:{}", path.display());
                Ok(Self { store: Arc::new(store), address, kind: Kind::File(path) })
            }
            StoreKind::Postgres => {
                let server = Server::create_in(folder).await;
                let (proxy, address) = Proxy::for_url(&server.url()).await;
                let options = PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() };
                let store = PostgresStore::connect(&address, options).await?;
                store.migrate().await?;
                Ok(Self { store: Arc::new(store), address, kind: Kind::Server { server, proxy } })
            }
        }
    }

    /// Returns whether it has a server, whose connections can break.
    pub(crate) const fn has_server(&self) -> bool {
        matches!(self.kind, Kind::Server { .. })
    }

    /// Ends all connections of clients, by the server.
    pub(crate) async fn kill_backends(&self) -> Result<()> {
        if let Kind::Server { server, .. } = &self.kind {
            connect(server).await?.execute(KILL_BACKENDS).await?;
        }
        Ok(())
    }

    /// Closes all connections and refuses new ones for a moment.
    pub(crate) async fn cut(&self) {
        if let Kind::Server { proxy, .. } = &self.kind {
            proxy.shut(true);
            tokio::time::sleep(CUT_FOR).await;
            proxy.shut(false);
        }
    }

    /// Returns the sizes of tables and indexes in MiB, with their names, and similar quantities.
    pub(crate) async fn sizes(&self) -> Result<Vec<(String, f64)>> {
        match &self.kind {
            Kind::Server { server, .. } => {
                let rows = connect(server).await?.fetch_all(SIZES).await?;
                Ok(rows.iter().map(|row| (row.get("name"), row.get("value"))).collect())
            }
            Kind::File(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || sizes_of_file(&path)).await?
            }
        }
    }
}

/// Opens a connection that no fault hits.
async fn connect(server: &Server) -> sqlx::Result<PgConnection> {
    let options: PgConnectOptions = server.url().parse()?;
    PgConnection::connect_with(&options.application_name("soak")).await
}

fn sizes_of_file(path: &Path) -> Result<Vec<(String, f64)>> {
    let mib = |path: &Path| std::fs::metadata(path).map_or(0.0, |about| about.len() as f64 / 1_048_576.0);
    let file = File::open(path)?;
    file.busy_timeout(Duration::from_secs(10))?;
    let mut statement = file.prepare(SIZES_OF_FILE)?;
    let sizes = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut sizes: Vec<(String, f64)> = sizes.collect::<rusqlite::Result<_>>()?;
    sizes.push(("the file".to_owned(), mib(path)));
    sizes.push(("its write-ahead log".to_owned(), mib(&path.with_extension("db-wal"))));
    Ok(sizes)
}
