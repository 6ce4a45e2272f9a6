//! Staging of a file's rows in the store, in one transaction that ends with the start of their run.

use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_jobs};
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkStaging, StoreResult};
use milepost_core::sql;

use crate::enqueue;
use crate::error::enqueue_error;
use crate::row::Decoded;
use crate::session::{Session, Transaction};
use crate::store::PostgresStore;

/// A file that is being staged. Dropping it rolls everything back.
pub(super) struct Staging {
    store: PostgresStore,
    run: JobId,
    rows: i64,
    transaction: Transaction,
}

impl Staging {
    pub(super) async fn begin(store: &PostgresStore, name: &str) -> StoreResult<Self> {
        let (run, name) = (JobId::new(), name.to_owned());
        let begin = async {
            let mut transaction = store.inner.intake.begin().await?;
            let file = sqlx::query(sql!("bulk/begin_file")).bind(run.0).bind(name);
            transaction.session().execute(file).await?;
            Ok(transaction)
        };
        let transaction = begin.await.map_err(|e| store.fail("stage_bulk", e))?;
        Ok(Self { store: store.clone(), run, rows: 0, transaction })
    }

    /// Starts the run, unless a job with its key exists.
    async fn close(&mut self, job: &NewJob) -> Decoded<Enqueued> {
        let (run, rows) = (self.run, self.rows);
        let start = async |session: &mut Session<'_>| {
            let made = enqueue::insert_run(session, job).await?;
            if !made.duplicate {
                begin_run(session, run, rows).await?;
            }
            Ok(made)
        };
        let tell = |made: &Enqueued| made_jobs(std::slice::from_ref(job), &[*made]);
        self.store.noted(&mut self.transaction.session(), &AuditedAction::start_bulk(run), start, tell).await
    }
}

async fn begin_run(session: &mut Session<'_>, run: JobId, rows: i64) -> Decoded<()> {
    let query = sqlx::query(sql!("bulk/begin_staged_run")).bind(run.0).bind(rows);
    session.execute(query).await.map(drop)
}

/// Stages rows of a run; `first` is the number of the first one.
pub(super) async fn stage(
    session: &mut Session<'_>,
    run: JobId,
    first: i64,
    rows: Vec<String>,
) -> Decoded<()> {
    let query = sqlx::query(sql!("bulk/stage")).bind(run.0).bind(first).bind(rows);
    session.execute(query).await.map(drop)
}

#[async_trait]
impl BulkStaging for Staging {
    async fn add(&mut self, rows: Vec<String>) -> StoreResult<()> {
        let count = rows.len() as i64;
        let staged = stage(&mut self.transaction.session(), self.run, self.rows + 1, rows).await;
        staged.map_err(|e| self.store.fail("stage_bulk", e))?;
        self.rows += count;
        Ok(())
    }

    async fn start(mut self: Box<Self>, job: &NewJob) -> StoreResult<Enqueued> {
        enqueue::check(std::slice::from_ref(job), self.store.inner.options.payload_bytes_max)?;
        let job = NewJob { id: self.run, ..job.clone() };
        let made = self.close(&job).await;
        let made = made.map_err(|e| enqueue_error(&self.store.inner.place, e))?;
        let ended = self.transaction.end(if made.duplicate { "rollback" } else { "commit" }).await;
        ended.map_err(|e| self.store.fail("stage_bulk", e))?;
        if made.duplicate {
            // Nothing was committed here, so nothing has waited for the standby that must have the run of this key.
            self.store.confirm_replication().await?;
        }
        Ok(made)
    }

    async fn give_up(self: Box<Self>) -> StoreResult<()> {
        self.transaction.end("rollback").await.map_err(|e| self.store.fail("stage_bulk", e))
    }
}
