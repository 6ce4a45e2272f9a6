//! Consistency checks and repairs. Each check is one statement on one snapshot, in a read-only transaction.

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::doctor::{Check, Example, Finding, Look};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{AbandonedRun, DoctorStore, StoreResult};
use milepost_core::sql;
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::check_statements;
use crate::error::{cause, store_error};
use crate::row::{Decoded, count, stop_verb};
use crate::session::{Repeatable, Session};
use crate::store::PostgresStore;

/// SQLSTATE of a statement that was canceled because it exceeded its time limit.
const CANCELED: &str = "57014";

#[async_trait]
impl DoctorStore for PostgresStore {
    fn checks(&self) -> Vec<Check> {
        Check::ALL.iter().copied().filter(|&check| check_statements::of_check(check).is_some()).collect()
    }

    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>> {
        let Some(question) = check_statements::of_check(check) else { return Ok(None) };
        let rows = self.ask(question, look).await;
        let rows = rows.and_then(|rows| rows.iter().map(breach).collect::<Decoded<Vec<_>>>());
        rows.map(|rows| Finding::of(check, rows)).map_err(|error| unanswered(&self.inner.place, error))
    }

    async fn repair_rows(&self, check: Check, limit: u32) -> StoreResult<u64> {
        let repair = async |session: &mut Session<'_>| {
            let mut mended: Vec<String> = Vec::new();
            for statement in repair_statements(check) {
                for row in session.rows(sqlx::query(*statement).bind(i64::from(limit))).await? {
                    mended.push(row.try_get(0)?);
                }
            }
            Ok(mended)
        };
        let tell = |mended: &Vec<String>| {
            (!mended.is_empty()).then(|| json!({ "mended": mended.len(), "ids": mended }))
        };
        let mended =
            self.or_nobody().act_telling(&self.inner.calm, &AuditedAction::repair(check), repair, tell).await;
        mended.map(|mended| mended.len() as u64).map_err(|e| self.fail("repair_rows", e))
    }

    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>> {
        let query = sqlx::query(sql!("repair/abandoned_runs")).bind(look.document()).bind(i64::from(limit));
        let rows = self.inner.calm.rows(query).await;
        rows.and_then(|rows| rows.iter().map(abandoned_run).collect())
            .map_err(|e| self.fail("abandoned_runs", e))
    }

    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()> {
        let tell = |(): &()| Some(json!({ "mended": mended }));
        let (store, action) = (self.or_nobody(), AuditedAction::repair(check));
        let noted = store.act_telling(&self.inner.calm, &action, async |_| Ok(()), tell).await;
        noted.map_err(|e| self.fail("note_repair", e))
    }
}

/// Begins the transaction of a check, which waits for locks no longer than other callers do.
const BEGIN_SNAPSHOT: &str = concat!(sql!("begin_snapshot"), ";\n", sql!("lock_wait/callers_local"));

impl PostgresStore {
    async fn ask(&self, question: &'static str, look: &Look) -> Result<Vec<PgRow>, sqlx::Error> {
        let time_limit = format!("{}ms", whole_ms(look.time_limit));
        let query = sqlx::query(question);
        let query = if question.contains("$1") { query.bind(look.document()) } else { query };
        let query = Repeatable::of(query);
        let rows = self.inner.calm.atomically(async |session| {
            session.script(BEGIN_SNAPSHOT).await?;
            session.execute(sqlx::query(sql!("limit_time")).bind(time_limit)).await?;
            session.rows(query).await
        });
        rows.await
    }
}

/// Returns the statements that repair a check's findings.
const fn repair_statements(check: Check) -> &'static [&'static str] {
    match check {
        Check::JobWithoutPlace => &[sql!("repair/place_in_live"), sql!("repair/place_in_ended")],
        Check::JobInBoth => &[sql!("repair/drop_live"), sql!("repair/drop_ended")],
        Check::TokenDiffers => &[sql!("repair/raise_token_live"), sql!("repair/raise_token_ended")],
        Check::KeyWithoutJob => &[sql!("repair/free_key")],
        Check::JobWithoutKey => &[sql!("repair/retake_key")],
        Check::SlotWithoutHolder => &[sql!("repair/free_slots")],
        Check::HolderWithoutSlot => &[sql!("repair/retake_slot")],
        Check::ReadyAtWrong => &[sql!("repair/set_ready")],
        Check::ProgressWithoutJob => &[sql!("repair/drop_progress")],
        Check::BulkWithoutJob => &[sql!("repair/drop_bulk")],
        Check::BulkLeftover => &[
            sql!("repair/drop_bulk_settings"),
            sql!("repair/drop_bulk_failures"),
            sql!("repair/drop_bulk_files"),
            sql!("repair/drop_bulk_targets"),
        ],
        Check::TaskStateDiffers => &[sql!("repair/task_states")],
        Check::PreCntDiffers => &[sql!("repair/tallies")],
        Check::BatchCountsDiffer => &[sql!("repair/batch_counts")],
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

fn breach(row: &PgRow) -> Decoded<(i64, Example)> {
    Ok((row.try_get(0)?, Example { what: row.try_get(1)?, detail: row.try_get(2)? }))
}

fn abandoned_run(row: &PgRow) -> Decoded<AbandonedRun> {
    Ok(AbandonedRun {
        run: Run { job: JobId(row.try_get("id")?), token: RunToken(row.try_get("token")?) },
        worker: WorkerId(row.try_get("worker_id")?),
        attempt: count(row, "attempt")?,
        max_attempts: count(row, "max_attempts")?,
        grouped: row.try_get("grouped")?,
        task: row.try_get("task")?,
        stop: stop_verb(row, "stop_verb")?,
    })
}

/// Converts the error of a check. A check that took too long will take as long again, so its error is not transient.
fn unanswered(place: &str, error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    if code.is_some_and(|code| code == CANCELED) {
        return StoreError::Database { verb: "examine", cause: cause(error) };
    }
    store_error(place, "examine", error)
}
