//! Bulk jobs of a configuration on an open store.

use std::sync::Arc;

use milepost::NewJob;
use milepost::bulk::{Definition, Dialect, InvalidBulk};
use milepost_core::port::{BulkRows, BulkWork, Throttle};
use milepost_executors::http::{HttpProbe, InvalidHttp};

use crate::config::ThrottleEntry;
use crate::store::Database;

/// What is done to a chunk in the store's own transactions.
pub(crate) enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A job of every target, like this one.
    Enqueue(NewJob),
}

/// Whose SQL the store has.
pub(crate) const fn dialect(database: &Database) -> Dialect {
    match database {
        Database::Postgres(_) => Dialect::Postgres,
        Database::Sqlite(_) => Dialect::Sqlite,
    }
}

/// A bulk job whose chunks are transactions of the store.
pub(crate) fn here(
    database: &Database,
    definition: &Definition,
    source: &str,
    key: &[String],
    effect: Effect,
) -> Result<Arc<dyn BulkWork>, InvalidBulk> {
    match database {
        Database::Postgres(store) => {
            use milepost_postgres::bulk::{ChildJobs, Effect as Its, SqlBulk};
            let effect = match effect {
                Effect::Sql(sql) => Its::Sql(sql),
                Effect::Enqueue(template) => Its::Handler(Arc::new(ChildJobs { template })),
            };
            Ok(Arc::new(SqlBulk::new(store, definition, source, key, effect)?))
        }
        Database::Sqlite(store) => {
            use milepost_sqlite::bulk::{ChildJobs, Effect as Its, SqlBulk};
            let effect = match effect {
                Effect::Sql(sql) => Its::Sql(sql),
                Effect::Enqueue(template) => Its::Handler(Arc::new(ChildJobs { template })),
            };
            Ok(Arc::new(SqlBulk::new(store, definition, source, key, effect)?))
        }
    }
}

/// The targets of one whose chunks are done elsewhere.
pub(crate) fn rows(
    database: &Database,
    definition: &Definition,
    source: &str,
    key: &[String],
) -> Result<Arc<dyn BulkRows>, InvalidBulk> {
    Ok(match database {
        Database::Postgres(store) => {
            Arc::new(milepost_postgres::bulk::PostgresRows::new(store, definition, source, key)?)
        }
        Database::Sqlite(store) => {
            Arc::new(milepost_sqlite::bulk::SqliteRows::new(store, definition, source, key)?)
        }
    })
}

/// What holds the runs of a bulk job.
pub(crate) fn throttles(
    database: &Database,
    entry: &ThrottleEntry,
) -> Result<Vec<Arc<dyn Throttle>>, InvalidHttp> {
    let mut throttles: Vec<Arc<dyn Throttle>> = match database {
        Database::Postgres(store) => {
            use milepost_postgres::bulk::{Measure, ServerThrottle};
            let measures = [
                entry.replica_lag.map(|max| Measure::ReplicaLag(max.0)),
                entry.lock_waits.map(Measure::LockWaits),
                entry.oldest_snapshot.map(|max| Measure::OldestSnapshot(max.0)),
                entry.sql.clone().map(Measure::Sql),
            ];
            let throttle = |measure| -> Arc<dyn Throttle> { Arc::new(ServerThrottle::new(store, measure)) };
            measures.into_iter().flatten().map(throttle).collect()
        }
        Database::Sqlite(store) => {
            let probe = |sql: &String| -> Arc<dyn Throttle> {
                Arc::new(milepost_sqlite::bulk::SqlProbe::new(store, sql))
            };
            entry.sql.iter().map(probe).collect()
        }
    };
    if let Some(url) = &entry.http {
        throttles.push(Arc::new(HttpProbe::new(url)?));
    }
    Ok(throttles)
}
