//! The baseline of the benchmark: the same statements in chunks of the same size, with one transaction per chunk and the cursor in memory,
//! without any other bookkeeping.

use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::TransactionBehavior;
use sqlx::PgPool;
use uuid::Uuid;

use super::members::Members;

/// Runs the chunks and returns the duration.
pub(super) async fn run(members: &Members, sizes: &[u32]) -> Result<Duration> {
    match members {
        Members::Postgres(pool) => on_postgres(pool, sizes).await,
        Members::Sqlite(_) => tokio::task::block_in_place(|| on_sqlite(members, sizes)),
    }
}

async fn on_postgres(pool: &PgPool, sizes: &[u32]) -> Result<Duration> {
    let run = Uuid::now_v7();
    let mut connection = pool.acquire().await?;
    let began = Instant::now();
    let mut cursor = 0_i64;
    for &size in sizes {
        let chunk = sqlx::query_scalar(include_str!("postgres/by_hand.sql"));
        let last: Option<i64> =
            chunk.bind(run).bind(cursor).bind(i64::from(size)).fetch_one(&mut *connection).await?;
        cursor = last.unwrap_or(cursor);
    }
    Ok(began.elapsed())
}

fn on_sqlite(members: &Members, sizes: &[u32]) -> Result<Duration> {
    let run = Uuid::now_v7().to_string();
    let mut file = members.file()?;
    let began = Instant::now();
    let mut cursor = 0_i64;
    for &size in sizes {
        let tx = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let last: i64 = tx
            .prepare_cached(include_str!("sqlite/last.sql"))?
            .query_row((cursor, size), |row| row.get(0))?;
        tx.prepare_cached(include_str!("sqlite/by_hand.sql"))?.execute((&run, cursor, last))?;
        tx.commit()?;
        cursor = last;
    }
    Ok(began.elapsed())
}
