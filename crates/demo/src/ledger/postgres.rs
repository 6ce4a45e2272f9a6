//! The demo's ledger in a PostgreSQL database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use milepost::{JobError, Run, Store};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_postgres::{PostgresOptions, PostgresStore};
use sqlx::Row;
use sqlx::postgres::{PgPool, PgPoolOptions, PgRow};

use super::{Facts, Ledger, Notification, Scope, Tally, place_of};

/// The maximum number of connections of the store and of the handlers. Two worker processes and the demo process must fit in the hundred
/// connections that a server allows by default.
const STORE_CONNECTIONS_MAX: u32 = 6;
const HANDLER_CONNECTIONS_MAX: u32 = 24;

pub(super) struct PostgresLedger {
    store: PostgresStore,
    handlers: PgPool,
}

impl PostgresLedger {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let options =
            PostgresOptions { connections_max: STORE_CONNECTIONS_MAX, ..PostgresOptions::default() };
        let store = PostgresStore::connect(url, options).await?;
        let handlers = PgPoolOptions::new()
            .max_connections(HANDLER_CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_secs(30))
            .test_before_acquire(false)
            .connect_lazy(url)?;
        Ok(Self { store, handlers })
    }

    async fn places(&self, sql: &'static str, scope: &Scope) -> Result<BTreeSet<u32>> {
        let keys: Vec<String> =
            sqlx::query_scalar(sql).bind(&scope.queue).bind(scope.first_id).fetch_all(&self.handlers).await?;
        keys.iter().map(|key| place_of(key)).collect()
    }

    async fn read_facts(&self, scope: &Scope) -> Result<Facts> {
        let tally = sqlx::query(include_str!("postgres/tally.sql")).bind(&scope.queue).bind(scope.first_id);
        let notified: Vec<(i32, i64)> = sqlx::query_as(include_str!("postgres/notified.sql"))
            .bind(&scope.queue)
            .fetch_all(&self.handlers)
            .await?;
        Ok(Facts {
            tally: read_tally(&tally.fetch_one(&self.handlers).await?)?,
            dead_letters: self.places(include_str!("postgres/dead_letters.sql"), scope).await?,
            retried: self.places(include_str!("postgres/retried.sql"), scope).await?,
            notifications: notified
                .into_iter()
                .map(|(place, count)| (place.cast_unsigned(), count.cast_unsigned()))
                .collect(),
        })
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn lay(&self, address: &StoreAddress) -> Result<()> {
        store::fit(&self.store, address, Schema::MadeWhenEmpty).await?;
        let made = sqlx::query(include_str!("postgres/create.sql")).execute(&self.handlers).await;
        made.with_context(|| format!("cannot create the demo's table in {address}"))?;
        Ok(())
    }

    async fn notify(&self, run: Run, notification: Notification) -> Result<(), JobError> {
        let Notification { queue, place, attempt } = notification;
        let mut tx = self.handlers.begin().await?;
        sqlx::query(include_str!("postgres/notify.sql"))
            .bind(&*queue)
            .bind(place.cast_signed())
            .bind(run.job.0)
            .bind(attempt.cast_signed())
            .execute(&mut *tx)
            .await?;
        milepost_postgres::complete(&mut tx, run, None).await?;
        Ok(tx.commit().await?)
    }

    async fn written(&self) -> Result<i64> {
        Ok(sqlx::query_scalar(include_str!("postgres/written.sql")).fetch_one(&self.handlers).await?)
    }

    async fn open_jobs(&self, queue: &str) -> Result<i64> {
        let open = sqlx::query_scalar(include_str!("postgres/open_jobs.sql")).bind(queue);
        Ok(open.fetch_one(&self.handlers).await?)
    }

    async fn facts(&self, scope: &Scope) -> Result<Facts> {
        self.read_facts(scope).await.context("cannot read the results of the jobs")
    }
}

fn read_tally(row: &PgRow) -> Result<Tally> {
    let count = |name: &str| row.try_get::<i64, _>(name).map(i64::cast_unsigned);
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
