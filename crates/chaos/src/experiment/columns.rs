//! A migration to a newer version as running programs see it: columns are added to the tables that they use.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use milepost_testkit::home::Home;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

/// The tables of both stores that the load uses most.
const TABLES: [&str; 22] = [
    "job",
    "live",
    "ended",
    "history",
    "worker",
    "job_key",
    "event",
    "aggregate",
    "subscription",
    "publisher",
    "batch",
    "batch_task",
    "batch_history",
    "bulk",
    "progress",
    "schedule",
    "processed_event",
    "audit",
    "queue",
    "dag",
    "dag_version",
    "dag_task",
];
/// The pause after a transaction that did not get all locks.
const PAUSE: Duration = Duration::from_millis(500);
/// How long it is tried.
const TRIES_MAX: Duration = Duration::from_secs(60);

/// Adds a column with this number to the tables of a file, in one transaction, as migrations do.
pub(super) async fn add_to_file(home: &dyn Home, number: u32) {
    let statements = TABLES.map(|table| statement(table, number)).concat();
    home.tamper(&format!("begin immediate;{statements}commit;")).await;
}

/// Adds a column with this number to the tables of a database, one after the other. Waits half a second for a lock, as migrations do.
pub(super) async fn add_to_database(url: &str, number: u32) -> Result<()> {
    for table in TABLES {
        let (began, statement) = (Instant::now(), statement(table, number));
        loop {
            let mut connection = PgConnection::connect(url).await?;
            connection.execute("set lock_timeout = '500ms'").await?;
            match connection.execute(AssertSqlSafe(statement.clone())).await {
                Ok(_) => break,
                Err(error) => ensure!(began.elapsed() < TRIES_MAX, "{table} gets no column: {error}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

fn statement(table: &str, number: u32) -> String {
    format!("alter table milepost.{table} add column later_{number} int;")
}
