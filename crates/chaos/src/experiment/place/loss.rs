//! Faults that lose the last commits of a server: the promotion of an asynchronous standby, and a restore to a moment in the past.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use milepost_testkit::server::Server;
use milepost_testkit::wait;
use sqlx::{Connection, Executor, PgConnection};

use super::{Database, LOADED_FOR, Place};
use crate::experiment::processes::Processes;
use crate::record::{Effect, Loss, LostRow};
use crate::witness::Witness;

/// The rows that calls are answered with, in the form of [`LostRow`].
const JOBS: &str = "select id::text from milepost.job";
const CHANGES: &str =
    "select pos, job_id::text, verb::text, token::bigint, from_state = 'running' from milepost.history";
const BATCHES: &str = "select id::text from milepost.batch";
const EVENTS: &str =
    "select event_id::text, aggregate_type || '/' || aggregate_id, aggregate_seq from milepost.event";
const MARKS: &str = "select why from milepost.audit where why is not null";

impl Place {
    /// Stops the replication to the standby, loses the server after this time, and promotes the standby. The commits between are lost.
    pub(in crate::experiment) async fn fail_over_async(
        &mut self,
        lag: Duration,
        witness: &Witness,
        number: u32,
    ) -> Result<Option<Loss>> {
        let Some(database) = &mut self.database else { return Ok(None) };
        let since_ms = witness.now_ms();
        database.detach_standby().await?;
        tokio::time::sleep(lag).await;
        database.server.crash().await;
        let until_ms = witness.now_ms();
        witness.saw(Effect::CommitsLost { loss: number });
        database.standby.promote().await;
        let kept = Kept::at(&database.standby.url()).await?;
        let lost = database.lead_to_standby().await?;
        let loss = kept.compare(lost, number, since_ms, until_ms).await?;
        self.synchronize()?;
        Ok(Some(loss))
    }

    /// Makes a backup, and restores it to a moment a short time before all processes and the server are stopped. The commits between are lost.
    pub(in crate::experiment) async fn restore(
        &mut self,
        processes: &mut Processes,
        lag: Duration,
        witness: &Witness,
        number: u32,
    ) -> Result<Option<Loss>> {
        let Some(database) = &mut self.database else { return Ok(None) };
        let backup = database.server.base_backup(&database.folder).await;
        let since_ms = witness.now_ms();
        let restore_point = format!("chaos {number}");
        let mut connection = PgConnection::connect(&database.server.url()).await?;
        let create = sqlx::query("select pg_create_restore_point($1)").bind(&restore_point);
        connection.execute(create).await?;
        tokio::time::sleep(lag).await;
        processes.kill_all().await?;
        drop(connection);
        database.server.stop().await;
        let until_ms = witness.now_ms();
        witness.saw(Effect::CommitsLost { loss: number });
        backup.recover(&database.server, &restore_point).await;
        database.standby = backup;
        let kept = Kept::at(&database.standby.url()).await?;
        let lost = database.lead_to_standby().await?;
        let loss = kept.compare(lost, number, since_ms, until_ms).await?;
        self.synchronize()?;
        processes.start_all()?;
        tokio::time::sleep(LOADED_FOR).await;
        Ok(Some(loss))
    }
}

impl Database {
    /// Lets commits wait for no standby any more, and ends the replication.
    async fn detach_standby(&self) -> Result<()> {
        set(&self.server.url(), "alter system set synchronous_standby_names = ''").await?;
        let url = self.standby.url();
        set(&url, "alter system set primary_conninfo = ''").await?;
        wait::until("the standby receives nothing", || async {
            let Ok(mut connection) = PgConnection::connect(&url).await else { return false };
            let receivers = sqlx::query_scalar("select count(*) from pg_stat_wal_receiver");
            receivers.fetch_one(&mut connection).await.is_ok_and(|receivers: i64| receivers == 0)
        })
        .await;
        Ok(())
    }
}

/// The rows of the new server before it accepted anything.
struct Kept {
    /// In a transaction that sees only these rows.
    connection: PgConnection,
    last_pos: i64,
}

impl Kept {
    /// Takes a snapshot of a server to which no process is connected yet.
    async fn at(url: &str) -> Result<Self> {
        let mut connection = PgConnection::connect(url).await?;
        // Settings for sessions without a request do not apply to this one.
        connection.execute("set idle_in_transaction_session_timeout = 0").await?;
        connection.execute("begin isolation level repeatable read, read only").await?;
        let last = "select coalesce(max(pos), 0) from milepost.history";
        let last_pos = sqlx::query_scalar(last).fetch_one(&mut connection).await?;
        Ok(Self { connection, last_pos })
    }

    /// Starts the lost server where no process reaches it, and compares it with these rows.
    async fn compare(mut self, mut lost: Server, number: u32, since_ms: i64, until_ms: i64) -> Result<Loss> {
        lost.start_aside().await;
        let mut connection = PgConnection::connect(&lost.url()).await?;
        let before = rows(&mut connection).await?;
        let after = rows(&mut self.connection).await?;
        let rows = before.difference(&after).cloned().collect();
        Ok(Loss { number, since_ms, until_ms, last_pos: self.last_pos, rows })
    }
}

/// Returns the rows that the connection sees.
async fn rows(connection: &mut PgConnection) -> Result<BTreeSet<LostRow>> {
    let mut rows = BTreeSet::new();
    let jobs: Vec<String> = sqlx::query_scalar(JOBS).fetch_all(&mut *connection).await?;
    rows.extend(jobs.into_iter().map(|job| LostRow::Job { job }));
    let changes: Vec<(i64, String, String, i64, Option<bool>)> =
        sqlx::query_as(CHANGES).fetch_all(&mut *connection).await?;
    rows.extend(changes.into_iter().map(|(pos, job, verb, token, ends_run)| LostRow::Change {
        pos,
        job,
        verb,
        token: token.unsigned_abs(),
        is_end: ends_run == Some(true),
    }));
    let batches: Vec<String> = sqlx::query_scalar(BATCHES).fetch_all(&mut *connection).await?;
    rows.extend(batches.into_iter().map(|batch| LostRow::Batch { batch }));
    let events: Vec<(String, String, i64)> = sqlx::query_as(EVENTS).fetch_all(&mut *connection).await?;
    rows.extend(events.into_iter().map(|(event, aggregate, sequence)| LostRow::Event {
        event,
        aggregate,
        sequence: sequence.unsigned_abs(),
    }));
    let marks: Vec<String> = sqlx::query_scalar(MARKS).fetch_all(&mut *connection).await?;
    rows.extend(marks.into_iter().map(|mark| LostRow::Audit { mark }));
    Ok(rows)
}

/// Changes a setting of a server.
async fn set(url: &str, setting: &'static str) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute(setting).await?;
    connection.execute("select pg_reload_conf()").await?;
    Ok(())
}
