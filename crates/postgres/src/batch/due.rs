//! Evaluation of due tasks, in the transaction that made them due or in a maintenance transaction.

use std::time::{Duration, Instant};

use milepost_core::batch::PAGE_ROWS;
use milepost_core::batch::due::{
    Becomes, CONDITION_IS_FALSE, DueTask, Effort, LARGE_MAX, LARGE_OF_BATCH_MAX,
};
use milepost_core::dag::definition::Work;
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::Awaited;
use milepost_core::duration::whole_ms;
use milepost_core::finish::Failure;
use milepost_core::json::Exact;
use milepost_core::sql;
use milepost_core::text::without_nul;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::due_data::{Due, TaskId, take};
use crate::row::{self, Decoded};
use crate::session::{Query, Session};

/// Maximum number of evaluation rounds in one transaction. A false condition skips tasks, whose successors may then be due
/// and have conditions themselves, and so on.
const ROUNDS_MAX: usize = 20;
/// Maximum number of tasks evaluated in one round: PostgreSQL ends a transaction whose client computes for longer than
/// `idle_in_transaction_session_timeout`.
const ROUND_ROWS: i64 = 500;
/// A transaction starts no further round after this time; the rest is left to the next transaction.
const ROUNDS_TOOK: Duration = Duration::from_millis(500);

/// Reports the end of these jobs to their batches, and evaluates the tasks that become due.
pub(crate) async fn settle_ended(session: &mut Session<'_>, jobs: Vec<Uuid>) -> Decoded<()> {
    let row = session.row(sqlx::query(sql!("batch/settle_jobs")).bind(jobs)).await?;
    go_on(session, row.as_ref()).await
}

/// Continues after a statement that left work: evaluates due tasks, and wakes workers for work that is too much for one
/// transaction.
pub(crate) async fn go_on(session: &mut Session<'_>, left: Option<&PgRow>) -> Decoded<()> {
    let Some(left) = left else { return Ok(()) };
    if left.try_get::<Option<i32>, _>("due_made")? > Some(0) {
        work_out(session, None).await?;
    }
    if left.try_get::<Option<i32>, _>("spread_left")? > Some(0) {
        session.execute(sqlx::query(sql!("batch/wake_to_advance"))).await?;
    }
    Ok(())
}

/// The result of evaluating due tasks in one transaction.
#[derive(Debug, Default)]
pub(super) struct WorkedOut {
    /// The number of tasks evaluated.
    pub(super) count: u64,
    /// Tasks that need more work than fits into a transaction; they stay due.
    pub(super) large: Vec<DueTask>,
}

/// Evaluates due tasks of the given batches or of all batches, up to about one page.
pub(super) async fn work_out(session: &mut Session<'_>, batches: Option<&[Uuid]>) -> Decoded<WorkedOut> {
    let mut all = WorkedOut::default();
    let begun = Instant::now();
    for _ in 0..ROUNDS_MAX {
        let due = take(session, batches, None, ROUND_ROWS).await?;
        if due.is_empty() {
            return Ok(all);
        }
        let round = tokio::task::spawn_blocking(move || evaluate(due)).await;
        let Round { little, large } = round.map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
        all.count += little.len() as u64;
        become_all(session, little).await?;
        all.large = large;
        // Large tasks stay due, so the next round would select them again.
        let is_full = all.count >= u64::from(PAGE_ROWS) || begun.elapsed() >= ROUNDS_TOOK;
        if is_full || !all.large.is_empty() {
            break;
        }
    }
    session.execute(sqlx::query(sql!("batch/wake_to_advance"))).await?;
    Ok(all)
}

/// Applies results that were computed outside of the transaction, except to tasks that have changed since. Returns the
/// number of tasks changed.
pub(super) async fn become_as_worked_out(
    session: &mut Session<'_>,
    worked_out: Vec<(DueTask, Becomes)>,
) -> Decoded<u64> {
    let batches = worked_out.iter().map(|(due, _)| due.batch.0).collect::<Vec<_>>();
    let tasks = worked_out.iter().map(|(due, _)| due.task.cast_signed()).collect();
    let standing = take(session, Some(&batches), Some(tasks), ROUND_ROWS).await?;
    let mut little = Vec::new();
    for (due, becomes) in worked_out {
        let at = (due.batch.0, due.task.cast_signed());
        if standing.iter().any(|(place, is)| *place == at && is.as_ref() == Ok(&due)) {
            little.push((at, Ok(due), becomes));
        }
    }
    let count = little.len() as u64;
    become_all(session, little).await?;
    Ok(count)
}

/// A due task that was evaluated.
type Worked = (TaskId, Result<DueTask, Failure>, Becomes);

/// The results of one round.
#[derive(Default)]
struct Round {
    little: Vec<Worked>,
    large: Vec<DueTask>,
}

/// Evaluates the expressions of due tasks: always the first, and further ones until [`ROUNDS_TOOK`] has passed. The rest
/// stay due, as do large tasks.
fn evaluate(due: Vec<Due>) -> Round {
    let begun = Instant::now();
    let mut round = Round::default();
    for (place, task) in due {
        // Further large tasks of the same batch wait, so that other batches are served too.
        if round.large.iter().filter(|due| due.batch.0 == place.0).count() >= LARGE_OF_BATCH_MAX {
            continue;
        }
        match task.as_ref().map(|due| due.becomes(Effort::Little)) {
            Ok(Some(becomes)) => round.little.push((place, task, becomes)),
            Err(why) => round.little.push((place, Err(why.clone()), Becomes::Failed(why.clone()))),
            Ok(None) if round.large.len() < LARGE_MAX => round.large.extend(task),
            Ok(None) => {}
        }
        if begun.elapsed() >= ROUNDS_TOOK {
            break;
        }
    }
    round
}

/// Applies the results of evaluated tasks.
async fn become_all(session: &mut Session<'_>, worked_out: Vec<Worked>) -> Decoded<()> {
    let (mut jobs, mut ends) = (Jobs::default(), Ends::default());
    for (place, task, becomes) in worked_out {
        match becomes {
            Becomes::Job(payload) => jobs.add(place, &payload),
            Becomes::Skipped => ends.add(place, TaskState::Skipped, CONDITION_IS_FALSE.to_owned()),
            Becomes::Failed(failure) => {
                ends.add(place, TaskState::Failed, format!("{}: {}", failure.code, failure.message));
            }
            other => {
                if let Some(why) = become_other(session, place, task.ok(), other).await? {
                    ends.add(place, TaskState::Failed, why);
                }
            }
        }
    }
    if !jobs.batches.is_empty() {
        session.execute(jobs.query()).await?;
    }
    if !ends.batches.is_empty() {
        let left = session.row(ends.query()).await?;
        let spread = left.map(|row| row.try_get::<i32, _>("spread_left")).transpose()?.unwrap_or(0);
        if spread > 0 {
            session.execute(sqlx::query(sql!("batch/wake_to_advance"))).await?;
        }
    }
    Ok(())
}

/// Turns a task into a bulk job, a child batch or a wait; returns the reason if that is not possible.
async fn become_other(
    session: &mut Session<'_>,
    (batch, task): TaskId,
    due: Option<DueTask>,
    becomes: Becomes,
) -> Decoded<Option<String>> {
    let Some(due) = due else { return Ok(None) };
    let name = match due.spec.work() {
        Some(Work::Bulk { name }) => name.to_owned(),
        Some(Work::Batch { dag }) => dag.to_owned(),
        _ => String::new(),
    };
    let (what, payload) = match becomes {
        Becomes::Bulk(payload) => ("bulk", payload),
        Becomes::Batch(input) => ("batch", input),
        Becomes::Items(items) => ("items", Exact::list(items)),
        Becomes::Wait(awaited) => {
            session.execute(begin_wait((batch, task), &awaited)).await?;
            return Ok(None);
        }
        Becomes::Job(_) | Becomes::Skipped | Becomes::Failed(_) => return Ok(None),
    };
    let query = sqlx::query(sql!("batch/release_other"))
        .bind(batch)
        .bind(task)
        .bind(what)
        .bind(name)
        .bind(payload.to_string());
    session.row(query).await.and_then(row::value)
}

fn begin_wait((batch, task): TaskId, awaited: &Awaited) -> Query {
    sqlx::query(sql!("batch/begin_wait"))
        .bind(batch)
        .bind(task)
        .bind(awaited.signal.clone())
        .bind(awaited.timeout.map(whole_ms))
        .bind(awaited.until.map(jiff_sqlx::Timestamp::from))
        .bind(awaited.on_timeout.state().as_str())
        .bind(awaited.to_string())
}

/// Tasks that become jobs.
#[derive(Default)]
struct Jobs {
    batches: Vec<Uuid>,
    tasks: Vec<i32>,
    payloads: Vec<String>,
}

impl Jobs {
    fn add(&mut self, (batch, task): TaskId, payload: &Exact) {
        self.batches.push(batch);
        self.tasks.push(task);
        self.payloads.push(payload.to_string());
    }

    fn query(self) -> Query {
        sqlx::query(sql!("batch/release")).bind(self.batches).bind(self.tasks).bind(self.payloads)
    }
}

/// Tasks that end without having been a job.
#[derive(Default)]
struct Ends {
    batches: Vec<Uuid>,
    tasks: Vec<i32>,
    states: Vec<&'static str>,
    whys: Vec<String>,
}

impl Ends {
    fn add(&mut self, (batch, task): TaskId, state: TaskState, why: String) {
        self.batches.push(batch);
        self.tasks.push(task);
        self.states.push(state.as_str());
        self.whys.push(without_nul(&why));
    }

    fn query(self) -> Query {
        sqlx::query(sql!("batch/settle"))
            .bind(self.batches)
            .bind(self.tasks)
            .bind(self.states)
            .bind(self.whys)
    }
}
