//! The demo's channels in a SQLite file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use milepost::bulk::Definition;
use milepost::{JobId, Store};
use milepost_core::port::BulkWork;
use milepost_sqlite::bulk::{Effect, SqlBulk};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::super::{Notice, World};
use super::{Channel, Channels, NoticeFacts};

pub(super) struct SqliteChannels(SqliteStore);

impl SqliteChannels {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self(SqliteStore::open(path, SqliteOptions::default())?))
    }
}

#[async_trait]
impl Channels for SqliteChannels {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn lay(&self, world: World) -> Result<u64> {
        let laid = self.0.transaction(move |tx| {
            tx.execute_batch(include_str!("sqlite/create.sql"))?;
            let count =
                tx.query_row(include_str!("sqlite/count.sql"), [world.0.cast_signed()], |row| row.get(0));
            anyhow::Ok(count.map(i64::cast_unsigned)?)
        });
        laid.await
    }

    async fn add(&self, world: World, channels: Vec<Channel>) -> Result<()> {
        let added = self.0.transaction(move |tx| {
            let mut add = tx.prepare_cached(include_str!("sqlite/add.sql"))?;
            for Channel { id, point: [x, y, z] } in channels {
                add.execute((world.0.cast_signed(), id.cast_signed(), x, y, z))?;
            }
            anyhow::Ok(())
        });
        added.await
    }

    fn work(&self, definition: &Definition, source: &str, apply: &str) -> Result<Arc<dyn BulkWork>> {
        let effect = Effect::Sql(apply.to_owned());
        Ok(Arc::new(SqlBulk::new(&self.0, definition, source, &["id".to_owned()], effect)?))
    }

    async fn is_in_chunk(&self) -> Result<bool> {
        let mut file = Connection::open(self.0.path())?;
        file.busy_timeout(Duration::ZERO)?;
        match file.transaction_with_behavior(TransactionBehavior::Immediate) {
            Ok(_) => Ok(false),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(true),
            // A suspended process may hold a lock of the write-ahead log without being in a chunk.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::FileLockingProtocolFailed) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn facts(&self, notice: Notice, job: JobId, world: World) -> Result<NoticeFacts> {
        let (run, params) = (job.to_string(), notice.params(world).to_string());
        let facts = self.0.transaction(move |tx| {
            let facts = tx.query_row(include_str!("sqlite/facts.sql"), (run, params), |row| {
                let count = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
                Ok(NoticeFacts {
                    targets: count(0)?,
                    notices: count(1)?,
                    missing: count(2)?,
                    doubled: count(3)?,
                })
            });
            anyhow::Ok(facts?)
        });
        facts.await
    }
}
