//! Filling a store as if it had been in use for days. This uses dedicated statements, because enqueueing the jobs would take hours.

use std::path::Path;

use anyhow::Result;
use futures::future::try_join_all;
use jiff::Timestamp;
use milepost_cli_support::store::StoreAddress;
use sqlx::{Executor, PgPool};

use super::super::JobsBench;
use super::super::filling::{self, portions};
use super::super::target::{Behind, Target};

const FILL_POSTGRES: &str = include_str!("fill_postgres.sql");
const FILL_SQLITE: &str = include_str!("fill_sqlite.sql");
const PREPARE_SQLITE: &str = include_str!("prepare_sqlite.sql");

/// The number of jobs in one transaction.
const PORTION: u64 = 20_000;
/// The number of connections that fill a server; each fills a range of the days.
const FILLERS: u64 = 2;

/// Fills a store and runs the maintenance that a store of this age would have had.
pub(super) async fn fill(bench: &JobsBench, target: &Target, address: &StoreAddress) -> Result<()> {
    match (&target.behind, address) {
        (Behind::Postgres(store), _) => fill_server(bench, store.pool()).await,
        (Behind::Sqlite(_), StoreAddress::Sqlite(path)) => {
            let (bench, path) = (bench.clone(), path.clone());
            tokio::task::spawn_blocking(move || fill_file(&bench, &path)).await?
        }
        (Behind::Sqlite(_), StoreAddress::Postgres(_)) => Ok(()),
    }
}

async fn fill_server(bench: &JobsBench, server: &PgPool) -> Result<()> {
    let jobs = bench.days * bench.per_day;
    try_join_all((0..FILLERS).map(|filler| async move {
        for (first, last) in portions(jobs * filler / FILLERS, jobs * (filler + 1) / FILLERS, PORTION) {
            sqlx::query(FILL_POSTGRES)
                .bind(first)
                .bind(last)
                .bind(bench.per_day as f64)
                .bind(bench.days as f64)
                .bind(i32::try_from(bench.payload_bytes)?)
                .execute(server)
                .await?;
        }
        anyhow::Ok(())
    }))
    .await?;
    server.execute(sqlx::raw_sql("vacuum analyze")).await?;
    server.execute(sqlx::raw_sql("checkpoint")).await?;
    Ok(())
}

fn fill_file(bench: &JobsBench, path: &Path) -> Result<()> {
    let mut conn = filling::open(path)?;
    conn.execute_batch(PREPARE_SQLITE)?;
    let now_ms = Timestamp::now().as_millisecond();
    for (first, last) in portions(0, bench.days * bench.per_day, PORTION) {
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        tx.execute("DELETE FROM temp.round", ())?;
        tx.execute(
            "INSERT INTO temp.round VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (first, last, bench.per_day as f64, bench.days as f64, bench.payload_bytes as i64, now_ms),
        )?;
        tx.execute_batch(FILL_SQLITE)?;
        tx.commit()?;
    }
    filling::settle(&conn)
}
