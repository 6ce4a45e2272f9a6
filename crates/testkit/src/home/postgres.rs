//! Homes in PostgreSQL databases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost::bulk::{Chunk, Definition, InvalidBulk};
use milepost_core::error::{Cause, StoreError};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{BulkWork, Store, StoreResult};
use milepost_postgres::bulk::{ChildEvents, ChildJobs, ChunkHandler, Effect, Operations, SqlBulk};
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode, pooled};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tokio::sync::Mutex;

use super::{Command, Effect as Outcome, Home, ids, names};
use crate::database::Database;
use crate::effect;
use crate::inbox::Desk;

/// A store in a PostgreSQL database.
pub struct PostgresHome {
    store: PostgresStore,
    address: String,
    /// Whether there is a transaction pooler before the server.
    pooled: bool,
    /// Connection for the statements of tests, opened on first use.
    plain: Mutex<Option<PgConnection>>,
    _database: Option<Database>,
}

impl PostgresHome {
    /// Creates a home in a new database, which is dropped with it.
    pub async fn fresh() -> Self {
        let (database, store) = Database::with_store().await;
        effect::prepare(store.pool()).await;
        let (address, plain) = (database.url(), Mutex::default());
        Self { store, address, pooled: false, plain, _database: Some(database) }
    }

    /// Runs statements that name tables without their schema. Returns the rows of the last one.
    async fn plain(&self, sql: &str) -> Vec<PgRow> {
        let mut kept = self.plain.lock().await;
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => {
                let mut connection = PgConnection::connect(&self.address).await.expect("connected");
                connection.execute("set search_path = milepost, public").await.expect("set");
                connection
            }
        };
        // The connection is reused only if nothing failed on it.
        let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.expect(sql);
        *kept = Some(connection);
        rows
    }

    /// Creates a home in this empty database, which is kept.
    pub async fn create_at(url: &str) -> Self {
        let home =
            Self::open(url, PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() }).await;
        home.store.migrate().await.expect("migrated");
        effect::prepare(home.store.pool()).await;
        home
    }

    /// Opens the home in this database.
    pub async fn open(url: &str, options: PostgresOptions) -> Self {
        Self::try_open(url, options).await.expect("cannot connect to the store")
    }

    /// As [`open`](Self::open), without a panic if the server does not answer.
    pub async fn try_open(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let store = PostgresStore::connect(url, options).await?;
        let (address, pooled) = (url.to_owned(), url.contains("pooler=transaction"));
        Ok(Self { store, address, pooled, plain: Mutex::default(), _database: None })
    }
}

fn refused(error: sqlx::Error) -> StoreError {
    StoreError::Database { verb: "effect", cause: error.into() }
}

#[async_trait]
impl Home for PostgresHome {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    async fn migrate(&self) -> StoreResult<()> {
        self.store.migrate().await.map(drop)
    }

    async fn record(&self, run: Run, place: &str) -> StoreResult<()> {
        let mut connection = self.store.pool().acquire().await.map_err(refused)?;
        effect::record(&mut connection, run, place).await.map_err(refused)
    }

    async fn record_with_success(&self, run: Run, place: &str) -> StoreResult<()> {
        let mut tx = self.store.pool().begin().await.map_err(refused)?;
        effect::record(&mut tx, run, place).await.map_err(refused)?;
        if self.pooled {
            pooled::complete(&mut tx, run, None).await?;
        } else {
            milepost_postgres::complete(&mut tx, run, None).await?;
        }
        tx.commit().await.map_err(refused)
    }

    async fn effects(&self) -> Vec<Outcome> {
        let rows: Vec<(uuid::Uuid, i32, String)> =
            sqlx::query_as("select job_id, token, place from test_effect order by job_id, token")
                .fetch_all(self.store.pool())
                .await
                .expect("answered");
        rows.into_iter()
            .map(|(job, token, place)| Outcome { job: JobId(job), token: RunToken(token), place })
            .collect()
    }

    async fn notes(&self) -> Vec<(String, i64)> {
        let notes = sqlx::query_as("select run, member from public.note").fetch_all(self.store.pool());
        notes.await.expect("answered")
    }

    async fn desk(&self) -> Desk {
        Desk::postgres(self.store.clone(), self.pooled).await
    }

    async fn expire_leases(&self, but: WorkerId) {
        // Leases that have already expired are not updated: a process that was frozen while it rescued their jobs holds locks on these rows.
        sqlx::query(
            "update milepost.worker set lease_expires_at = now() - interval '1 second'
             where id <> $1 and lease_expires_at > now()",
        )
        .bind(but.0)
        .execute(self.store.pool())
        .await
        .expect("expired");
    }

    async fn is_writable(&self) -> bool {
        true
    }

    async fn tamper(&self, sql: &str) {
        self.plain(sql).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        self.plain(sql).await.first().expect("a row").try_get(0).expect("a number")
    }

    fn id(&self, job: JobId) -> String {
        format!("'{job}'")
    }

    fn time(&self, column: &str) -> String {
        column.to_owned()
    }

    fn ago(&self, age: Duration) -> String {
        format!("now() - interval '{} s'", age.as_secs())
    }

    fn ahead(&self, by: Duration) -> String {
        format!("now() + interval '{} s'", by.as_secs())
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
            Command::Operations => Effect::Handler(Arc::new(Operations::new(&self.store))),
            Command::Function => Effect::Handler(Arc::new(Notes)),
        };
        Ok(Arc::new(SqlBulk::new(&self.store, definition, source, &names(key), effect)?))
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

#[async_trait]
impl ChunkHandler for Notes {
    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause> {
        let note = sqlx::query("insert into note (run, member) select $1, unnest($2::bigint[])");
        note.bind(chunk.origin.to_string()).bind(ids(chunk)?).execute(connection).await?;
        Ok(())
    }
}
