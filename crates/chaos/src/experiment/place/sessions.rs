//! Faults of a server that refuses or ends sessions.

use std::time::Duration;

use anyhow::Result;
use sqlx::{Connection, Executor, PgConnection};

use super::{Database, END_SILENT_TRANSACTIONS};

/// How long all places are taken, or statements time out.
const FOR: Duration = Duration::from_millis(500);
/// How often an attempt to take a place may fail before all places count as taken.
const REFUSED_MAX: u32 = 3;
/// Shorter than most transactions of the load.
const TIME_OUT: [&str; 2] = [
    "alter system set statement_timeout = '5ms'",
    "alter system set idle_in_transaction_session_timeout = '5ms'",
];
/// As before.
const DO_NOT_TIME_OUT: [&str; 2] = ["alter system reset statement_timeout", END_SILENT_TRANSACTIONS];

impl Database {
    /// Takes all places for connections for a moment, and ends the connections of the processes, so that they need new ones.
    pub(in crate::experiment) async fn limit_connections(&self) -> Result<()> {
        self.kill_backends().await?;
        let mut taken = Vec::new();
        let mut refused = 0;
        while refused < REFUSED_MAX {
            match PgConnection::connect(&self.server.url()).await {
                Ok(connection) => taken.push(connection),
                Err(_) => refused += 1,
            }
        }
        tokio::time::sleep(FOR).await;
        drop(taken);
        Ok(())
    }

    /// Lets the server cancel statements and end transactions that take longer than a few milliseconds, for a moment.
    pub(in crate::experiment) async fn time_out_sessions(&self) -> Result<()> {
        // Connected before, so that it keeps its own settings.
        let mut connection = PgConnection::connect(&self.server.url()).await?;
        for setting in ["set statement_timeout = 0", "set idle_in_transaction_session_timeout = 0"] {
            connection.execute(setting).await?;
        }
        for setting in TIME_OUT.iter().chain(&["select pg_reload_conf()"]) {
            connection.execute(*setting).await?;
        }
        tokio::time::sleep(FOR).await;
        for setting in DO_NOT_TIME_OUT {
            connection.execute(setting).await?;
        }
        connection.execute("select pg_reload_conf()").await?;
        Ok(())
    }
}
