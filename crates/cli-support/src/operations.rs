//! Operations on many jobs: an internal bulk job of Milepost, which runs in the same process as the API that starts it.

use std::sync::Arc;

use anyhow::Result;
use milepost::bulk::{Bulk, Columns, Definition};
use milepost::{RetentionPolicy, Worker, WorkerOptions};
use milepost_core::bulk::operation;
use milepost_core::port::BulkWork;
use milepost_core::schedule::Source;

use crate::store::Database;

/// Starts a worker that runs the operations on jobs that operators request. Like every worker it deletes old rows, with this retention
/// policy.
pub async fn start(database: &Database, retention: RetentionPolicy) -> Result<Worker> {
    let definition = operation::definition()?;
    let store = database.store();
    store.put_bulk(&definition, Source::Operator).await?;
    let options = WorkerOptions::default();
    let name = format!("{} (operations)", options.name);
    let worker = Worker::builder(store)
        .options(|all| {
            *all = WorkerOptions { name, queues: Vec::new(), concurrency: 1, retention, ..options }
        })
        .bulk(Bulk::new(definition.clone(), work(database, &definition)?));
    Ok(worker.start().await?)
}

fn work(database: &Database, definition: &Definition) -> Result<Arc<dyn BulkWork>> {
    let columns = definition.columns.as_ref();
    let source = columns.map(|columns| columns.source(database.dialect())).unwrap_or_default();
    let key = Columns::key();
    Ok(match database {
        Database::Postgres(store) => {
            use milepost_postgres::bulk::{Effect, Operations, SqlBulk};
            let effect = Effect::Handler(Arc::new(Operations::new(store)));
            Arc::new(SqlBulk::new(store, definition, &source, &key, effect)?)
        }
        Database::Sqlite(store) => {
            use milepost_sqlite::bulk::{Effect, Operations, SqlBulk};
            Arc::new(SqlBulk::new(store, definition, &source, &key, Effect::Handler(Arc::new(Operations)))?)
        }
    })
}
