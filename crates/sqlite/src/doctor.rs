//! Examination and repair (doctor). Each check is one statement in one read transaction.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::doctor::{Check, Example, Finding, Look};
use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::port::{AbandonedRun, DoctorStore, StoreResult};
use milepost_core::sql;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row, Transaction};
use serde_json::json;
use uuid::Uuid;

use crate::batch::{repair_batch, settle_jobs};
use crate::check_statements;
use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::{Failure, defect};
use crate::row;
use crate::store::SqliteStore;
use crate::wal::LOG_BYTES_MAX;
use crate::{disk, group};

#[async_trait]
impl DoctorStore for SqliteStore {
    fn checks(&self) -> Vec<Check> {
        let of_files = [Check::LogHeldBack, Check::DiskShort];
        Check::ALL
            .iter()
            .copied()
            .filter(|check| check_statements::of_check(*check).is_some() || of_files.contains(check))
            .collect()
    }

    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>> {
        let look = *look;
        let rows = match check {
            Check::LogHeldBack => self.read("examine", |conn| about_file(conn, log_held_back)).await?,
            Check::DiskShort => self.read("examine", |conn| about_file(conn, disk_short)).await?,
            // Only the writing connection has the settings with which it commits.
            Check::WeakDurability => {
                self.write("examine", Hint::NONE, move |tx| ask(tx, check, &look)).await?
            }
            _ => self.read("examine", move |conn| ask(conn, check, &look)).await?,
        };
        Ok(Finding::of(check, rows))
    }

    async fn repair_rows(&self, check: Check, limit: u32) -> StoreResult<u64> {
        let tell = |mended: &Vec<String>| {
            (!mended.is_empty()).then(|| json!({ "mended": mended.len(), "ids": mended }))
        };
        let repair = move |tx: &Transaction<'_>| repair(tx, check, limit);
        let mended = self
            .or_nobody()
            .act_telling("repair_rows", Hint::READY, AuditedAction::repair(check), repair, tell)
            .await?;
        Ok(mended.len() as u64)
    }

    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>> {
        let look = look.document();
        self.read("abandoned_runs", move |conn| {
            let mut statement = conn.prepare(sql!("repair/abandoned_runs"))?;
            let runs = statement.query_map((look, limit), abandoned_run)?;
            Ok(runs.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()> {
        let tell = move |(): &()| Some(json!({ "mended": mended }));
        self.or_nobody()
            .act_telling("note_repair", Hint::NONE, AuditedAction::repair(check), |_| Ok(()), tell)
            .await
    }
}

type Breach = (i64, Example);

fn ask(conn: &Connection, check: Check, look: &Look) -> Result<Vec<Breach>, Failure> {
    let Some(question) = check_statements::of_check(check) else { return Ok(Vec::new()) };
    let mut statement = conn.prepare(question)?;
    if statement.parameter_count() > 0 {
        statement.raw_bind_parameter(1, look.document())?;
    }
    let rows = within(conn, look.time_limit, || statement.raw_query().mapped(breach).collect());
    match rows {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Err(defect("examine", "the statement took longer than the time limit").into())
        }
        rows => Ok(rows?),
    }
}

/// Interrupts the connection when the time limit has passed; zero means no limit.
fn within<T>(conn: &Connection, time_limit: Duration, work: impl FnOnce() -> T) -> T {
    if time_limit.is_zero() {
        return work();
    }
    let handle = conn.get_interrupt_handle();
    let (done, over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if over.recv_timeout(time_limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                handle.interrupt();
            }
        });
        let outcome = work();
        drop(done);
        outcome
    })
}

fn breach(row: &Row<'_>) -> rusqlite::Result<Breach> {
    Ok((row.get(0)?, Example { what: name(row, 1)?, detail: row.get(2)? }))
}

/// Returns a job id as text, and any other name as it is; a malformed id as its bytes in hexadecimal.
fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(id) => match Uuid::from_slice(id) {
            Ok(id) => id.to_string(),
            Err(_) => format!("{id:02x?}"),
        },
        ValueRef::Integer(number) => number.to_string(),
        text => text.as_str()?.to_owned(),
    })
}

/// Runs a check of the file system instead of the rows.
fn about_file(
    conn: &Connection,
    question: fn(&Path) -> std::io::Result<Option<String>>,
) -> Result<Vec<Breach>, Failure> {
    let path = conn.path().unwrap_or_default();
    let answer = question(Path::new(path)).map_err(|e| defect("examine", e.to_string()))?;
    Ok(answer.map(|detail| (1, Example { what: path.to_owned(), detail })).into_iter().collect())
}

fn log_held_back(path: &Path) -> std::io::Result<Option<String>> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let bytes = match std::fs::metadata(log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found?.len(),
    };
    Ok((bytes > 2 * LOG_BYTES_MAX).then(|| format!("its write-ahead log has {} MiB", bytes >> 20)))
}

fn disk_short(path: &Path) -> std::io::Result<Option<String>> {
    let room = disk::room(path)?;
    let mib = |bytes: u64| bytes >> 20;
    let words = || {
        format!(
            "{} MiB of {} MiB are free; keep {} MiB free",
            mib(room.free),
            mib(room.total),
            mib(room.least())
        )
    };
    Ok(room.is_short().then(words))
}

fn repair(conn: &Connection, check: Check, limit: u32) -> Result<Vec<String>, Failure> {
    match check {
        Check::SlotWithoutHolder => return free_slots(conn, limit),
        Check::HolderWithoutSlot => return retake_slots(conn, limit),
        Check::TaskStateDiffers | Check::PreCntDiffers | Check::BatchCountsDiffer => {
            return repair_batches(conn, check, limit);
        }
        _ => {}
    }
    let mut mended = Vec::new();
    for sql in repair_statements(check) {
        let mut statement = conn.prepare(sql)?;
        statement.raw_bind_parameter(1, limit)?;
        if statement.parameter_count() > 1 {
            statement.raw_bind_parameter(2, now_ms())?;
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            mended.push(name(row, 0)?);
        }
    }
    if matches!(check, Check::JobWithoutPlace | Check::JobInBoth) {
        settle_jobs(conn, mended.iter().filter_map(|job| job.parse().ok()))?;
    }
    Ok(mended)
}

/// Returns the statements that repair a check's findings.
const fn repair_statements(check: Check) -> &'static [&'static str] {
    match check {
        Check::JobWithoutPlace => &[sql!("repair/place_in_live"), sql!("repair/place_in_ended")],
        Check::JobInBoth => &[sql!("repair/drop_live"), sql!("repair/drop_ended")],
        Check::TokenDiffers => &[sql!("repair/raise_token_live"), sql!("repair/raise_token_ended")],
        Check::KeyWithoutJob => &[sql!("repair/free_key")],
        Check::JobWithoutKey => &[sql!("repair/retake_key")],
        Check::ReadyAtWrong => &[sql!("repair/set_ready")],
        Check::ProgressWithoutJob => &[sql!("repair/drop_progress")],
        Check::BulkWithoutJob => &[sql!("repair/drop_bulk")],
        Check::BulkLeftover => &[
            sql!("repair/drop_bulk_settings"),
            sql!("repair/drop_bulk_failures"),
            sql!("repair/drop_bulk_files"),
            sql!("repair/drop_bulk_targets"),
        ],
        Check::BatchLeftover => &[
            sql!("repair/drop_batch_tasks"),
            sql!("repair/drop_batch_inputs"),
            sql!("repair/drop_batch_spreads"),
            sql!("repair/drop_batch_history"),
            sql!("repair/drop_batch_waits"),
            sql!("repair/drop_batch_signals"),
        ],
        Check::AggregateBehind => &[sql!("repair/raise_heads")],
        Check::ParkedWithoutEvents => &[sql!("repair/drop_parked_aggregates")],
        Check::HeldEventGone => &[
            sql!("repair/drop_parked_events"),
            sql!("repair/drop_parked_aggregates"),
            sql!("repair/drop_dead_events"),
        ],
        _ => &[],
    }
}

/// Frees slots of jobs that do not hold them, and assigns them to waiting jobs.
fn free_slots(conn: &Connection, limit: u32) -> Result<Vec<String>, Failure> {
    let idle = grouped(conn, sql!("repair/idle_slots"), limit)?;
    for (group, job) in &idle {
        group::hand_over(conn, group, job, now_ms())?;
    }
    Ok(idle.into_iter().map(|(_, job)| job.to_string()).collect())
}

/// Assigns free slots to jobs that hold their group without a slot.
fn retake_slots(conn: &Connection, limit: u32) -> Result<Vec<String>, Failure> {
    let mut taken = Vec::new();
    for (group, job) in grouped(conn, sql!("repair/bare_holders"), limit)? {
        if group::force(conn, &group, &job, now_ms())? != group::Admission::Waits {
            taken.push(job.to_string());
        }
    }
    Ok(taken)
}

/// Repairs batches from the facts, as long as the check finds batches that have not been tried.
fn repair_batches(conn: &Connection, check: Check, limit: u32) -> Result<Vec<String>, Failure> {
    let Some(question) = check_statements::of_check(check) else { return Ok(Vec::new()) };
    let mut statement = conn.prepare(question)?;
    let (mut tried, mut mended) = (BTreeSet::new(), Vec::new());
    while mended.len() < limit as usize {
        let found = statement.query_map((), |row| row::batch_id(row, 1))?;
        let found = found.collect::<rusqlite::Result<BTreeSet<_>>>()?;
        let before = tried.len();
        // Later batches first: inner batches before outer ones.
        for batch in found.into_iter().rev() {
            if tried.insert(batch) && repair_batch(conn, batch)? {
                mended.push(batch.to_string());
            }
        }
        if tried.len() == before {
            break;
        }
    }
    Ok(mended)
}

/// Returns jobs with their groups.
fn grouped(conn: &Connection, question: &str, limit: u32) -> rusqlite::Result<Vec<(String, JobId)>> {
    let mut statement = conn.prepare(question)?;
    statement.query_map([limit], |row| Ok((row.get(0)?, row::job_id(row, 1)?)))?.collect()
}

fn abandoned_run(row: &Row<'_>) -> rusqlite::Result<AbandonedRun> {
    Ok(AbandonedRun {
        run: Run { job: row::job_id(row, 0)?, token: row::token(row, 1)? },
        worker: WorkerId(row.get(2)?),
        attempt: row.get(3)?,
        max_attempts: row.get(4)?,
        grouped: row.get(5)?,
        task: row.get(7)?,
        stop: row::word_opt(row, 6)?,
    })
}
