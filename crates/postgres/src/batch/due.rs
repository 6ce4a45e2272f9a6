//! Evaluation of due tasks, in the transaction that made them due or in a maintenance transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::batch::PAGE_ROWS;
use milepost_core::batch::READ_BYTES_MAX;
use milepost_core::batch::due::{
    Becomes, CONDITION_IS_FALSE, DueTask, Effort, LARGE_MAX, LARGE_OF_BATCH_MAX, ReadTask, reads_too_much,
    unreadable,
};
use milepost_core::batch::nominal::NominalTime;
use milepost_core::dag::definition::Work;
use milepost_core::dag::rule::Outcome;
use milepost_core::dag::state::TaskState;
use milepost_core::finish::Failure;
use milepost_core::ident::BatchId;
use milepost_core::json::Exact;
use milepost_core::sql;
use milepost_core::text::without_nul;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::row::{self, Decoded, named};
use crate::session::{Query, Session};

/// Maximum number of evaluation rounds in one transaction. A false condition skips tasks, whose successors may then be due
/// and have conditions themselves, and so on.
const ROUNDS_MAX: usize = 20;
/// Maximum number of tasks evaluated in one round: PostgreSQL ends a transaction whose client computes for longer than
/// `idle_in_transaction_session_timeout`.
const ROUND_ROWS: i64 = 500;
/// A transaction starts no further round after this time; the rest is left to the next transaction.
const ROUNDS_TOOK: Duration = Duration::from_millis(500);

/// A task, by its batch and number.
type TaskId = (Uuid, i32);

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

/// A due task, or the reason why it cannot be evaluated.
type Due = (TaskId, Result<DueTask, Failure>);

/// Locks due tasks of all batches, of these batches, or these tasks (`batches` and `tasks` are then parallel arrays), and
/// loads the data that they read.
async fn take(
    session: &mut Session<'_>,
    batches: Option<&[Uuid]>,
    tasks: Option<Vec<i32>>,
    most: i64,
) -> Decoded<Vec<Due>> {
    let query = sqlx::query(sql!("batch/due")).bind(batches.map(<[Uuid]>::to_vec)).bind(most).bind(tasks);
    let rows = session.rows(query).await?;
    let mut reading = Vec::new();
    for row in &rows {
        if row.try_get("reads")? {
            reading.push(place(row)?);
        }
    }
    let mut reads = if reading.is_empty() { HashMap::new() } else { reads(session, reading).await? };
    let mut shared = HashMap::new();
    rows.iter()
        .map(|row| {
            let at = place(row)?;
            // Only the first row of each batch contains the shared data.
            let shared = shared.entry(at.0).or_insert_with(|| Shared::read(row));
            let reads = reads.remove(&at).unwrap_or_else(|| Ok(Vec::new()));
            // A task that cannot be decoded fails alone.
            let due = match (shared, reads) {
                (Ok(shared), Ok(reads)) => {
                    due_task(row, at, shared, reads).map_err(|error| unreadable(&error))
                }
                (Err(why), _) => Err(why.clone()),
                (_, Err(why)) => Err(why),
            };
            Ok((at, due))
        })
        .collect()
}

/// The data that all tasks of a batch share.
struct Shared {
    input: Arc<Exact>,
    /// The items of a batch over a list.
    list: Vec<Exact>,
}

impl Shared {
    fn read(row: &PgRow) -> Result<Self, Failure> {
        let read = || {
            let input = exact(row.try_get("input")?)?.unwrap_or_default();
            let list = exact(row.try_get("list")?)?;
            Decoded::Ok((input, list))
        };
        let (input, list) = read().map_err(|error| unreadable(&error))?;
        let list = list.and_then(|list| list.into_items().ok()).unwrap_or_default();
        Ok(Self { input: Arc::new(input), list })
    }
}

fn place(row: &PgRow) -> Decoded<TaskId> {
    Ok((row.try_get("batch_id")?, row.try_get("task")?))
}

fn due_task(
    row: &PgRow,
    (batch, task): TaskId,
    shared: &Shared,
    predecessors: Vec<ReadTask>,
) -> Decoded<DueTask> {
    let number = task.unsigned_abs();
    let item = row.try_get::<bool, _>("is_item")?.then(|| {
        let item = shared.list.get(number as usize).cloned();
        (item.unwrap_or_default(), number)
    });
    Ok(DueTask {
        batch: BatchId(batch),
        task: number,
        spec: serde_json::from_str(row.try_get("spec")?).map_err(|e| sqlx::Error::Decode(Box::new(e)))?,
        input: Arc::clone(&shared.input),
        nominal: NominalTime::of_columns(row::time(row, "nominal_at")?, row.try_get("nominal_zone")?),
        predecessors,
        item,
        schema: json(row.try_get("schema")?)?,
    })
}

fn json(text: Option<&str>) -> Decoded<Option<Value>> {
    text.map(serde_json::from_str).transpose().map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

fn exact(text: Option<&str>) -> Decoded<Option<Exact>> {
    text.map(Exact::read).transpose().map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

/// Loads the outputs of predecessors that due tasks read; a failure for a task whose data is too large.
async fn reads(
    session: &mut Session<'_>,
    reading: Vec<TaskId>,
) -> Decoded<HashMap<TaskId, Result<Vec<ReadTask>, Failure>>> {
    let (batches, tasks): (Vec<Uuid>, Vec<i32>) = reading.into_iter().unzip();
    let bytes_max = i64::try_from(READ_BYTES_MAX).unwrap_or(i64::MAX);
    let query = sqlx::query(sql!("batch/reads")).bind(batches).bind(tasks).bind(bytes_max);
    let mut all: HashMap<TaskId, Result<Vec<ReadTask>, Failure>> = HashMap::new();
    for row in session.rows(query).await? {
        let of_task = all.entry(place(&row)?).or_insert_with(|| Ok(Vec::new()));
        if row.try_get("too_much")? {
            *of_task = Err(reads_too_much());
        }
        let state: TaskState = named(&row, "state")?;
        // A predecessor that was retried after its successor was decided had failed.
        let state = state.outcome().unwrap_or(Outcome::Failed);
        if let Ok(reads) = of_task {
            match exact(row.try_get("output")?) {
                Ok(output) => reads.push(ReadTask {
                    key: row.try_get("key")?,
                    state,
                    output: output.unwrap_or_default(),
                }),
                Err(error) => *of_task = Err(unreadable(&error)),
            }
        }
    }
    Ok(all)
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

/// Turns a task into a bulk job or a child batch; returns the reason if that is not possible.
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
