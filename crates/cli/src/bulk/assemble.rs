//! Construction of bulk jobs from their configuration and an open store.

use std::sync::Arc;

use milepost::NewJob;
use milepost::bulk::{Definition, EventTemplate, InvalidBulk, Remote};
use milepost_cli_support::store::Database;
use milepost_core::port::{BulkWork, Throttle};
use milepost_executors::http::{HttpProbe, InvalidHttp};
use milepost_postgres::bulk::{Database as Other, Measure, PostgresTargets, ServerThrottle};

use crate::config::ThrottleEntry;

/// The operation on a chunk.
pub(crate) enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A job for each target, created from this template.
    Enqueue(NewJob),
    /// An event for each target.
    Emit(EventTemplate),
    /// None: a server or a program applies the chunks.
    Elsewhere,
}

/// The database with the targets of a bulk job, and the query that selects them.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The store.
    pub(crate) database: &'a Database,
    /// The separate database, if the targets are not in the store's database.
    pub(crate) other: Option<&'a Other>,
    pub(crate) definition: &'a Definition,
    pub(crate) source: &'a str,
    pub(crate) key: &'a [String],
}

impl Site<'_> {
    /// Returns the work of a bulk job.
    pub(crate) fn work(self, effect: Effect) -> Result<Arc<dyn BulkWork>, InvalidBulk> {
        let Self { database, other, definition, source, key } = self;
        match (other, database) {
            (Some(other), _) => Ok(Arc::new(match effect {
                Effect::Sql(sql) => {
                    self.remote(self.targets(other, Some(milepost_postgres::bulk::Effect::Sql(sql)))?)
                }
                Effect::Elsewhere => self.remote(self.targets(other, None)?),
                Effect::Enqueue(template) => self.remote(self.targets(other, None)?).enqueue(template),
                Effect::Emit(template) => {
                    let targets = self.targets(other, None)?.reading(template.columns());
                    self.remote(targets).emit(template)
                }
            })),
            (None, Database::Postgres(store)) => {
                use milepost_postgres::bulk::{ChildEvents, ChildJobs, Effect as Its, SqlBulk};
                let effect = match effect {
                    Effect::Sql(sql) => Its::Sql(sql),
                    Effect::Enqueue(template) => Its::Handler(Arc::new(ChildJobs { template })),
                    Effect::Emit(template) => Its::Handler(Arc::new(ChildEvents { template })),
                    Effect::Elsewhere => Its::Elsewhere,
                };
                Ok(Arc::new(SqlBulk::new(store, definition, source, key, effect)?))
            }
            (None, Database::Sqlite(store)) => {
                use milepost_sqlite::bulk::{ChildEvents, ChildJobs, Effect as Its, SqlBulk};
                let effect = match effect {
                    Effect::Sql(sql) => Its::Sql(sql),
                    Effect::Enqueue(template) => Its::Handler(Arc::new(ChildJobs { template })),
                    Effect::Emit(template) => Its::Handler(Arc::new(ChildEvents { template })),
                    Effect::Elsewhere => Its::Elsewhere,
                };
                Ok(Arc::new(SqlBulk::new(store, definition, source, key, effect)?))
            }
        }
    }

    fn targets(
        self,
        other: &Other,
        effect: Option<milepost_postgres::bulk::Effect>,
    ) -> Result<PostgresTargets, InvalidBulk> {
        PostgresTargets::new(other, self.source, self.key, effect)
    }

    fn remote(self, targets: PostgresTargets) -> Remote {
        Remote::new(self.database.store(), self.definition, Arc::new(targets))
    }

    /// Returns the throttles of its runs. They measure the server that contains the targets.
    pub(crate) fn throttles(self, entry: &ThrottleEntry) -> Result<Vec<Arc<dyn Throttle>>, InvalidHttp> {
        let mut throttles: Vec<Arc<dyn Throttle>> = match (self.other, self.database) {
            (Some(other), _) => of_server(entry, |measure| ServerThrottle::on(other, measure)),
            (None, Database::Postgres(store)) => {
                of_server(entry, |measure| ServerThrottle::new(store, measure))
            }
            (None, Database::Sqlite(store)) => {
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
}

/// Returns the throttles that measure a PostgreSQL server.
fn of_server(entry: &ThrottleEntry, throttle: impl Fn(Measure) -> ServerThrottle) -> Vec<Arc<dyn Throttle>> {
    let measures = [
        entry.replica_lag.map(|max| Measure::ReplicaLag(max.0)),
        entry.lock_waits.map(Measure::LockWaits),
        entry.oldest_snapshot.map(|max| Measure::OldestSnapshot(max.0)),
        entry.sql.clone().map(Measure::Sql),
    ];
    let throttle = |measure| -> Arc<dyn Throttle> { Arc::new(throttle(measure)) };
    measures.into_iter().flatten().map(throttle).collect()
}
