//! Filling a store with jobs. This uses dedicated statements, because enqueueing the jobs would take hours.

use std::path::Path;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use milepost_cli_support::store::StoreAddress;
use milepost_core::ident::WorkerId;
use rusqlite::TransactionBehavior;
use sqlx::PgPool;

use crate::filling::{self, portions};
use crate::target::{Behind, Target};

/// The kinds and queues of the jobs, as the statements name them.
pub(super) const KINDS: [&str; 8] =
    ["mail", "invoice", "report", "sync", "thumbnail", "export", "score", "notify"];
pub(super) const QUEUES: [&str; 3] = ["default", "night", "bulk"];

/// The number of jobs in one transaction.
const PORTION: u64 = 50_000;

/// The parameters of the filling.
pub(super) struct Filling {
    pub(super) jobs: u64,
    /// The store's time: the last job was created a minute earlier.
    pub(super) now_ms: i64,
    /// The worker that ran the ended jobs.
    pub(super) worker: WorkerId,
}

impl Filling {
    /// Returns the parameters of the statements: the portion, the total number of jobs, the time and the worker.
    fn values(&self, (first, last): (i64, i64)) -> (i64, i64, i64, i64, i32) {
        (first, last, self.jobs.cast_signed(), self.now_ms, self.worker.0)
    }
}

/// Fills an empty store and runs the maintenance that would have happened while the jobs arrived.
pub(super) async fn fill(filling: Filling, target: &Target, address: &StoreAddress) -> Result<()> {
    let bar = bar(filling.jobs);
    match (&target.behind, address) {
        (Behind::Postgres(store), _) => fill_server(&filling, store.pool(), &bar).await,
        (Behind::Sqlite(_), StoreAddress::Sqlite(path)) => {
            let path = path.clone();
            tokio::task::spawn_blocking(move || fill_file(&filling, &path, &bar)).await?
        }
        (Behind::Sqlite(_), StoreAddress::Postgres(_)) => {
            bail!("the store is not of the type of the address")
        }
    }
}

async fn fill_server(filling: &Filling, server: &PgPool, bar: &ProgressBar) -> Result<()> {
    for portion in portions(0, filling.jobs, PORTION) {
        let (first, last, jobs, now_ms, worker) = filling.values(portion);
        sqlx::query(include_str!("queries/postgres/fill.sql"))
            .bind(first)
            .bind(last)
            .bind(jobs)
            .bind(now_ms)
            .bind(worker)
            .execute(server)
            .await?;
        bar.set_position(last.unsigned_abs());
    }
    bar.set_prefix("settling");
    sqlx::raw_sql(include_str!("queries/postgres/settle.sql")).execute(server).await?;
    Ok(())
}

fn fill_file(filling: &Filling, path: &Path, bar: &ProgressBar) -> Result<()> {
    let mut file = filling::open(path)?;
    file.execute_batch(include_str!("queries/sqlite/prepare.sql"))?;
    for portion in portions(0, filling.jobs, PORTION) {
        let tx = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(include_str!("queries/sqlite/number.sql"), filling.values(portion))?;
        tx.execute_batch(include_str!("queries/sqlite/fill.sql"))?;
        tx.commit()?;
        bar.set_position(portion.1.unsigned_abs());
    }
    bar.set_prefix("settling");
    filling::settle(&file)
}

/// Returns a progress bar over the jobs. It is shown only on a terminal and cleared when it is dropped.
fn bar(jobs: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(jobs), ProgressDrawTarget::stderr())
        .with_finish(ProgressFinish::AndClear);
    let template = "{prefix:>8} [{wide_bar}] {human_pos}/{human_len} jobs, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix("filling");
    bar
}
