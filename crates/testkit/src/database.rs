//! PostgreSQL databases for single tests.

use std::sync::{Arc, LazyLock, mpsc};

use milepost_postgres::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::{OnceCell, oneshot};

use crate::{Scene, wait};

/// A database that is dropped some time after this value is dropped.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Creates an empty database on the server that `scripts/services` started.
    pub async fn create() -> Self {
        Self::like("template1").await
    }

    /// Creates a database with the current schema: a copy of a template that was migrated once.
    pub async fn migrated() -> Self {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        Self::like(TEMPLATE.get_or_init(template::name).await).await
    }

    async fn like(template: &str) -> Self {
        // Copies files, which is cheaper for small databases than copying through the WAL.
        Self::create_as(&format!("template {template} strategy file_copy")).await
    }

    /// Creates a database with these options of `create database`.
    pub async fn create_as(options: &str) -> Self {
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let statement = format!("create database {name} {options}");
        let (done, made) = oneshot::channel();
        CREATES
            .send(Order { statement, done: Some(done) })
            .expect("the thread that creates databases has ended");
        made.await.expect("the database was not created");
        Self { server: server(), name }
    }

    /// Creates a database with a migrated store.
    pub async fn with_store() -> (Self, PostgresStore) {
        let database = Self::migrated().await;
        let store = connect(&database.url()).await;
        (database, store)
    }

    /// Creates a database with a migrated store and a scene.
    pub async fn with_scene() -> (Self, PostgresStore, Scene) {
        let (database, store) = Self::with_store().await;
        let scene = Scene::on(Arc::new(store.clone())).await;
        (database, store, scene)
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        at(&self.server, &self.name)
    }

    /// Returns the URL of the database through the transaction pooler: there are fewer server connections than clients, and prepared statements and
    /// settings do not survive a transaction.
    pub fn pooled_url(&self) -> String {
        at(&pooler(), &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The next test does not wait for this. Databases that remain when the process ends are removed with the server.
        let name = self.name.clone();
        let drop = format!("drop database if exists {name} with (force)");
        let _ = DROPS.send(Order { statement: drop, done: None });
    }
}

/// A statement for the server, and the channel that reports its completion.
struct Order {
    statement: String,
    done: Option<oneshot::Sender<()>>,
}

/// Creates databases.
static CREATES: LazyLock<mpsc::Sender<Order>> = LazyLock::new(clerk);
/// Drops databases; no caller waits for that.
static DROPS: LazyLock<mpsc::Sender<Order>> = LazyLock::new(clerk);

/// Executes statements one after another on one connection, on a thread that outlives the runtimes of tests.
fn clerk() -> mpsc::Sender<Order> {
    let (sender, orders) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut kept = None;
        for Order { statement, done } in orders {
            match runtime.block_on(carry_out(&mut kept, &statement)) {
                Ok(()) => drop(done.map(|done| done.send(()))),
                // Dropping the sender informs the waiting caller of the failure.
                Err(error) => {
                    eprintln!("{statement}: {error}");
                    kept = None;
                }
            }
        }
    });
    sender
}

async fn carry_out(kept: &mut Option<PgConnection>, statement: &str) -> sqlx::Result<()> {
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(PgConnection::connect(&server()).await?),
    };
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))).await.map(drop)
}

/// Migrates the database at this URL and returns a store on it.
pub async fn open(url: &str) -> PostgresStore {
    let store = connect(url).await;
    store.migrate().await.expect("migrated");
    store
}

async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url, PostgresOptions::default()).await.expect("cannot connect to the store")
}

async fn run(connection: &mut PgConnection, statement: String) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.clone()))).await.expect(&statement);
}

/// Waits until a session of the store's database waits for a lock.
pub async fn until_one_waits(store: &PostgresStore) {
    until_waiting(store, 1).await;
}

/// Waits until at least this number of sessions of the store's database wait for locks.
pub async fn until_waiting(store: &PostgresStore, sessions: i64) {
    wait::until("sessions wait for a lock", || async {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i64>(waits).fetch_one(store.pool()).await.expect("counted") >= sessions
    })
    .await;
}

/// Returns the URL of the server for tests.
pub fn server() -> String {
    std::env::var("MILEPOST_TEST_POSTGRES")
        .expect("MILEPOST_TEST_POSTGRES is not set; run `scripts/test`, or `scripts/services run cargo test`")
}

/// Returns the URL of the transaction pooler in front of the server.
fn pooler() -> String {
    std::env::var("MILEPOST_TEST_PGBOUNCER").expect(
        "MILEPOST_TEST_PGBOUNCER is not set; run `scripts/test`, or `scripts/services run cargo test`",
    )
}

/// Returns the URL of another database on the same server.
fn at(server: &str, database: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("the URL has no database");
    format!("{base}/{database}")
}

/// The template database, from which others are copied.
mod template {
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::path::{Path, PathBuf};

    use sqlx::{Connection, PgConnection};

    use super::{at, open, run, server};

    /// Sources of the schema. A changed schema gets a new template, also on a server that keeps running.
    const SOURCES: [&str; 3] = ["../postgres/migrations", "../postgres/sql", "../postgres/src/migrate.rs"];

    /// Returns the name of the template. The first process that calls this creates it.
    pub(super) async fn name() -> String {
        let name = format!("milepost_{:016x}", fingerprint());
        let mut connection =
            PgConnection::connect(&server()).await.expect("cannot connect to the test server");
        run(&mut connection, "select pg_advisory_lock(19792, 1000)".to_owned()).await;
        let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
            .bind(&name)
            .fetch_one(&mut connection)
            .await
            .expect("answered");
        if !exists {
            make(&mut connection, &name).await;
        }
        name
    }

    /// Creates the template under another name until it is complete, because the creating process may be killed.
    async fn make(connection: &mut PgConnection, name: &str) {
        run(connection, format!("drop database if exists {name}_incomplete with (force)")).await;
        run(connection, format!("create database {name}_incomplete")).await;
        let store = open(&at(&server(), &format!("{name}_incomplete"))).await;
        store.close().await;
        // A template must not have connections while it is copied.
        run(connection, format!("alter database {name}_incomplete allow_connections false")).await;
        run(connection, format!("alter database {name}_incomplete rename to {name}")).await;
    }

    fn fingerprint() -> u64 {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<PathBuf> =
            SOURCES.iter().flat_map(|source| files_of(&crate_folder.join(source))).collect();
        files.sort();
        let mut hasher = DefaultHasher::new();
        for file in files {
            file.hash(&mut hasher);
            std::fs::read(&file).expect("cannot read a source of the schema").hash(&mut hasher);
        }
        hasher.finish()
    }

    fn files_of(path: &Path) -> Vec<PathBuf> {
        if path.is_file() {
            return vec![path.to_owned()];
        }
        let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        entries.flat_map(|entry| files_of(&entry.expect("cannot read a directory entry").path())).collect()
    }
}
