//! The channels that are notified, and the notices that they got.

mod postgres;
mod sqlite;

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use milepost::bulk::Definition;
use milepost::{JobId, Store};
use milepost_core::port::BulkWork;

use super::{Notice, World};
use crate::store::StoreAddress;
use postgres::PostgresChannels;
use sqlite::SqliteChannels;

/// A channel and its place's point on the unit sphere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) id: u64,
    pub(super) point: [f64; 3],
}

/// What the database says about a run when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NoticeFacts {
    /// Channels that were to be notified.
    pub(super) targets: u64,
    /// Notices.
    pub(super) notices: u64,
    /// Of the targets, those without a notice.
    pub(super) missing: u64,
    /// Channels with more than one notice.
    pub(super) doubled: u64,
}

/// A store with channels in it.
#[async_trait]
pub(super) trait Channels: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Makes the tables. Answers how many channels of this world there are.
    async fn lay(&self, world: World) -> Result<u64>;

    /// Adds channels.
    async fn add(&self, world: World, channels: Vec<Channel>) -> Result<()>;

    /// What is done to the channels of a source.
    fn work(&self, definition: &Definition, source: &str, apply: &str) -> Result<Arc<dyn BulkWork>>;

    /// Whether somebody is in the middle of a chunk.
    async fn is_in_chunk(&self) -> Result<bool>;

    /// What became of a run.
    async fn facts(&self, notice: Notice, job: JobId, world: World) -> Result<NoticeFacts>;
}

/// Opens the store.
pub(super) async fn open(address: &StoreAddress) -> Result<Arc<dyn Channels>> {
    let channels: Arc<dyn Channels> = match address {
        StoreAddress::Sqlite(path) => Arc::new(SqliteChannels::open(path)?),
        StoreAddress::Postgres(url) => Arc::new(PostgresChannels::connect(url).await?),
    };
    Ok(channels)
}
