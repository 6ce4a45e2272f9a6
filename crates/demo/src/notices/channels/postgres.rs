//! The demo's channels in a PostgreSQL database.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use milepost::bulk::Definition;
use milepost::{JobId, Store};
use milepost_core::port::BulkWork;
use milepost_postgres::bulk::{Effect, SqlBulk};
use milepost_postgres::{PostgresOptions, PostgresStore};
use sqlx::PgPool;

use super::super::{Notice, World};
use super::{Channel, Channels, NoticeFacts};

/// A low limit, because the demo has many other connections.
const CONNECTIONS_MAX: u32 = 4;

pub(super) struct PostgresChannels(PostgresStore);

impl PostgresChannels {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let options = PostgresOptions { connections_max: CONNECTIONS_MAX, ..PostgresOptions::default() };
        Ok(Self(PostgresStore::connect(url, options).await?))
    }

    fn pool(&self) -> &PgPool {
        self.0.pool()
    }
}

#[async_trait]
impl Channels for PostgresChannels {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn lay(&self, world: World) -> Result<u64> {
        sqlx::raw_sql(include_str!("postgres/create.sql")).execute(self.pool()).await?;
        let count = sqlx::query_scalar(include_str!("postgres/count.sql")).bind(world.0.cast_signed());
        Ok(count.fetch_one(self.pool()).await.map(i64::cast_unsigned)?)
    }

    async fn add(&self, world: World, channels: Vec<Channel>) -> Result<()> {
        let coordinate = |at: usize| channels.iter().map(|its| its.point[at]).collect::<Vec<f64>>();
        sqlx::query(include_str!("postgres/add.sql"))
            .bind(world.0.cast_signed())
            .bind(channels.iter().map(|its| its.id.cast_signed()).collect::<Vec<i64>>())
            .bind(coordinate(0))
            .bind(coordinate(1))
            .bind(coordinate(2))
            .execute(self.pool())
            .await?;
        Ok(())
    }

    fn work(&self, definition: &Definition, source: &str, apply: &str) -> Result<Arc<dyn BulkWork>> {
        let effect = Effect::Sql(apply.to_owned());
        Ok(Arc::new(SqlBulk::new(&self.0, definition, source, &["id".to_owned()], effect)?))
    }

    async fn is_in_chunk(&self) -> Result<bool> {
        Ok(sqlx::query_scalar(include_str!("postgres/is_in_chunk.sql")).fetch_one(self.pool()).await?)
    }

    async fn facts(&self, notice: Notice, job: JobId, world: World) -> Result<NoticeFacts> {
        let facts = sqlx::query_as(include_str!("postgres/facts.sql"))
            .bind(job.0)
            .bind(notice.params(world).to_string());
        let (targets, notices, missing, doubled): (i64, i64, i64, i64) = facts.fetch_one(self.pool()).await?;
        let [targets, notices, missing, doubled] =
            [targets, notices, missing, doubled].map(i64::cast_unsigned);
        Ok(NoticeFacts { targets, notices, missing, doubled })
    }
}
