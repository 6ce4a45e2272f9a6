//! Staging of a file's rows, in pieces short enough that other processes can write in between. The last piece also starts the run;
//! retention deletes staged rows without a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_jobs};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkStaging, StoreResult};
use milepost_core::sql;
use rusqlite::Transaction;

use crate::clock::now_ms;
use crate::command::Hint;
use crate::enqueue;
use crate::error::Failure;
use crate::row::Id;
use crate::store::SqliteStore;

/// The longest duration of a piece, so that its transaction stays short.
const PIECE_MAX: Duration = Duration::from_millis(20);
/// The pause between two pieces.
const GAP: Duration = Duration::from_millis(2);
/// How many rows are deleted at a time.
const REMOVED_AT_ONCE: u32 = 2000;

/// A file that is being staged.
pub(super) struct Staging {
    store: SqliteStore,
    run: JobId,
    rows: i64,
}

impl Staging {
    pub(super) async fn begin(store: &SqliteStore, name: &str) -> StoreResult<Self> {
        let (run, name) = (JobId::new(), name.to_owned());
        let begin = move |tx: &Transaction<'_>| {
            tx.prepare_cached(sql!("bulk/begin_file"))?.execute((Id(&run), name, now_ms()))?;
            Ok(())
        };
        store.write("stage_bulk", Hint::NONE, begin).await?;
        Ok(Self { store: store.clone(), run, rows: 0 })
    }

    async fn remove(&self) -> StoreResult<()> {
        let run = self.run;
        loop {
            let remove = move |tx: &Transaction<'_>| {
                let removed =
                    tx.prepare_cached(sql!("forget_bulk_targets"))?.execute((Id(&run), REMOVED_AT_ONCE))?;
                if removed == 0 {
                    tx.prepare_cached(sql!("forget_bulk_file"))?.execute([Id(&run)])?;
                }
                Ok(removed)
            };
            if self.store.write("stage_bulk", Hint::NONE, remove).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(GAP).await;
        }
    }
}

/// Stages rows until the time limit of a piece, numbered from `first`; returns how many.
fn stage(tx: &Transaction<'_>, run: JobId, first: i64, rows: &[String]) -> Result<usize, Failure> {
    let begun = Instant::now();
    if tx.prepare_cached(sql!("bulk/touch_file"))?.execute((Id(&run), now_ms()))? == 0 {
        return Err(Failure::Told(InvalidBulk::StagingLost { job: run }.into()));
    }
    let mut statement = tx.prepare_cached(sql!("bulk/stage"))?;
    for (row, n) in rows.iter().zip(first..) {
        statement.execute((Id(&run), n, row))?;
        if begun.elapsed() >= PIECE_MAX {
            return Ok((n - first) as usize + 1);
        }
    }
    Ok(rows.len())
}

/// Stages all rows, for a trial that is rolled back.
pub(super) fn stage_for_trial(tx: &Transaction<'_>, run: JobId, rows: &[String]) -> Result<(), Failure> {
    let mut statement = tx.prepare_cached(sql!("bulk/stage"))?;
    for (row, n) in rows.iter().zip(1_i64..) {
        statement.execute((Id(&run), n, row))?;
    }
    Ok(())
}

fn start(tx: &Transaction<'_>, job: &NewJob, rows: i64) -> Result<Enqueued, Failure> {
    let made = enqueue::insert_one(tx, job)?;
    if made.duplicate {
        return Ok(made);
    }
    let at_ms = now_ms();
    if tx.prepare_cached(sql!("bulk/start_file"))?.execute((Id(&made.job), rows, at_ms))? == 0 {
        return Err(Failure::Told(InvalidBulk::StagingLost { job: made.job }.into()));
    }
    tx.prepare_cached(sql!("bulk/begin_staged_run"))?.execute((Id(&made.job), rows, at_ms))?;
    Ok(made)
}

#[async_trait]
impl BulkStaging for Staging {
    async fn add(&mut self, rows: Vec<String>) -> StoreResult<()> {
        let (run, rows) = (self.run, Arc::new(rows));
        let mut at = 0;
        while at < rows.len() {
            let (first, rows) = (self.rows + 1, rows.clone());
            let piece = move |tx: &Transaction<'_>| stage(tx, run, first, &rows[at..]);
            let staged = self.store.write("stage_bulk", Hint::NONE, piece).await?;
            self.rows += staged as i64;
            at += staged;
            tokio::time::sleep(GAP).await;
        }
        Ok(())
    }

    async fn start(self: Box<Self>, job: &NewJob) -> StoreResult<Enqueued> {
        enqueue::check(std::slice::from_ref(job), self.store.options().payload_bytes_max)?;
        let (job, rows) = (NewJob { id: self.run, ..job.clone() }, self.rows);
        let (action, asked) = (AuditedAction::start_bulk(job.id), job.clone());
        let tell = move |made: &Enqueued| made_jobs(&[asked], &[*made]);
        let start = move |tx: &Transaction<'_>| start(tx, &job, rows);
        let made = self.store.act_telling("stage_bulk", Hint::READY, action, start, tell).await?;
        if made.duplicate {
            self.remove().await?;
        }
        Ok(made)
    }

    async fn give_up(self: Box<Self>) -> StoreResult<()> {
        self.remove().await
    }
}
