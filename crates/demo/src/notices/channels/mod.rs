//! The channels to notify, and the notices that they received.

mod postgres;
mod sqlite;

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use milepost::bulk::Definition;
use milepost::{JobId, Store};
use milepost_cli_support::store::StoreAddress;
use milepost_core::port::BulkWork;

use super::{Notice, World};
use postgres::PostgresChannels;
use sqlite::SqliteChannels;

/// A channel, and the point of its place on the unit sphere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) id: u64,
    pub(super) point: [f64; 3],
}

/// The final state of a run in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NoticeFacts {
    /// The number of channels to notify.
    pub(super) targets: u64,
    /// The number of notices.
    pub(super) notices: u64,
    /// The number of targets without a notice.
    pub(super) missing: u64,
    /// The number of channels with more than one notice.
    pub(super) doubled: u64,
}

/// A store with the channels table.
#[async_trait]
pub(super) trait Channels: Send + Sync {
    /// Returns the store.
    fn store(&self) -> Arc<dyn Store>;

    /// Creates the tables. Returns the number of existing channels of this world.
    async fn lay(&self, world: World) -> Result<u64>;

    /// Adds channels.
    async fn add(&self, world: World, channels: Vec<Channel>) -> Result<()>;

    /// Returns the work of a bulk job with this source and this statement.
    fn work(&self, definition: &Definition, source: &str, apply: &str) -> Result<Arc<dyn BulkWork>>;

    /// Returns whether a bulk job of a demo is in the middle of a chunk.
    async fn is_in_chunk(&self) -> Result<bool>;

    /// Reads the results of a run.
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
