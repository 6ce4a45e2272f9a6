//! Evaluation of due tasks, in the transaction that made them due or in a maintenance transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::batch::due::{
    Becomes, CONDITION_IS_FALSE, DueTask, Effort, LARGE_MAX, LARGE_OF_BATCH_MAX, ReadTask, reads_too_much,
    unreadable,
};
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::{PAGE_ROWS, READ_BYTES_MAX, ROUND_READ_BYTES_MAX};
use milepost_core::dag::definition::{Task, Work};
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
        let of = definition(row)?;
        // The tasks of a list follow one another.
        if row.try_get("reads")? && reading.last() != Some(&of) {
            reading.push(of);
        }
    }
    let reads = if reading.is_empty() { HashMap::new() } else { reads(session, reading).await? };
    let mut shared = Shared::default();
    let mut due = Vec::with_capacity(rows.len());
    for row in &rows {
        shared.add(row)?;
        let (at, of) = (place(row)?, definition(row)?);
        let predecessors = match reads.get(&of) {
            None => Ok(Arc::from([])),
            Some(Reads::Some(predecessors)) => Ok(predecessors.clone()),
            Some(Reads::Failed(why)) => Err(why.clone()),
            // It stays due.
            Some(Reads::Later) => continue,
        };
        // A task that cannot be decoded fails alone.
        due.push((at, predecessors.and_then(|predecessors| shared.task(row, at, of, predecessors))));
    }
    Ok(due)
}

/// Data that several due tasks share. Only the first row with it contains it.
#[derive(Default)]
struct Shared {
    batches: HashMap<Uuid, Result<BatchData, Failure>>,
    definitions: HashMap<TaskId, Result<Arc<Task>, Failure>>,
    /// The input schemas of DAGs.
    schemas: HashMap<String, Arc<Value>>,
}

/// The data of a batch.
struct BatchData {
    input: Arc<Exact>,
    /// The items of a batch over a list.
    list: Vec<Exact>,
}

impl Shared {
    /// Takes the data that a row is the first to contain.
    fn add(&mut self, row: &PgRow) -> Decoded<()> {
        let batch = row.try_get("batch_id")?;
        self.batches.entry(batch).or_insert_with(|| BatchData::read(row).map_err(|error| unreadable(&error)));
        if let Some(text) = row.try_get::<Option<&str>, _>("spec")? {
            let spec = serde_json::from_str::<Task>(text).map_err(|error| unreadable(&error));
            if let (Ok(Task { dag: Some(dag), .. }), Ok(Some(schema))) = (&spec, schema(row)) {
                self.schemas.insert(dag.clone(), Arc::new(schema));
            }
            self.definitions.insert(definition(row)?, spec.map(Arc::new));
        }
        Ok(())
    }

    fn task(
        &self,
        row: &PgRow,
        (batch, task): TaskId,
        of: TaskId,
        predecessors: Arc<[ReadTask]>,
    ) -> Result<DueTask, Failure> {
        let missing = || unreadable(&sqlx::Error::RowNotFound);
        let data = self.batches.get(&batch).ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
        let spec = self.definitions.get(&of).ok_or_else(missing)?.as_ref().map_err(Clone::clone)?;
        let number = task.unsigned_abs();
        let read = || {
            let item = row.try_get::<bool, _>("is_item")?.then(|| {
                let item = data.list.get(number as usize).cloned();
                (item.unwrap_or_default(), number)
            });
            let nominal =
                NominalTime::of_columns(row::time(row, "nominal_at")?, row.try_get("nominal_zone")?);
            Decoded::Ok((item, nominal))
        };
        let (item, nominal) = read().map_err(|error| unreadable(&error))?;
        Ok(DueTask {
            batch: BatchId(batch),
            task: number,
            spec: spec.clone(),
            input: data.input.clone(),
            nominal,
            predecessors,
            item,
            schema: spec.dag.as_ref().and_then(|dag| self.schemas.get(dag)).cloned(),
        })
    }
}

impl BatchData {
    fn read(row: &PgRow) -> Decoded<Self> {
        let input = exact(row.try_get("input")?)?.unwrap_or_default();
        let list = exact(row.try_get("list")?)?;
        let list = list.and_then(|list| list.into_items().ok()).unwrap_or_default();
        Ok(Self { input: Arc::new(input), list })
    }
}

fn place(row: &PgRow) -> Decoded<TaskId> {
    Ok((row.try_get("batch_id")?, row.try_get("task")?))
}

/// Returns the task whose definition this one has: itself, or the task with the list for an item.
fn definition(row: &PgRow) -> Decoded<TaskId> {
    Ok((row.try_get("batch_id")?, row.try_get("spec_task")?))
}

fn schema(row: &PgRow) -> Decoded<Option<Value>> {
    let text: Option<&str> = row.try_get("schema")?;
    text.map(serde_json::from_str).transpose().map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

fn exact(text: Option<&str>) -> Decoded<Option<Exact>> {
    text.map(Exact::read).transpose().map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

/// What the tasks of one definition read.
enum Reads {
    /// The results of the predecessors.
    Some(Arc<[ReadTask]>),
    /// They cannot be read.
    Failed(Failure),
    /// Nothing was loaded: the results of other tasks are enough for this round.
    Later,
}

/// Loads the results of the predecessors that the tasks of these definitions read. Tasks with the same predecessor share its result.
async fn reads(session: &mut Session<'_>, reading: Vec<TaskId>) -> Decoded<HashMap<TaskId, Reads>> {
    let (batches, tasks): (Vec<Uuid>, Vec<i32>) = reading.into_iter().unzip();
    let [task_max, round_max] =
        [READ_BYTES_MAX, ROUND_READ_BYTES_MAX].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let query = sqlx::query(sql!("batch/reads")).bind(batches).bind(tasks).bind(task_max).bind(round_max);
    let mut results: HashMap<Uuid, Result<Arc<Exact>, Failure>> = HashMap::new();
    let mut all: HashMap<TaskId, Result<Vec<ReadTask>, Reads>> = HashMap::new();
    for row in session.rows(query).await? {
        let of_task = all.entry(place(&row)?).or_insert_with(|| Ok(Vec::new()));
        if row.try_get("later")? {
            *of_task = Err(Reads::Later);
        } else if row.try_get("too_much")? {
            *of_task = Err(Reads::Failed(reads_too_much()));
        }
        let Ok(reads) = of_task else { continue };
        let read = || {
            let output = exact(row.try_get("output")?).map_err(|error| unreadable(&error));
            Decoded::Ok(output.map(|output| Arc::new(output.unwrap_or_default())))
        };
        let output = match row.try_get::<Option<Uuid>, _>("source")? {
            Some(source) => match results.get(&source) {
                Some(result) => result.clone(),
                None => results.entry(source).or_insert(read()?).clone(),
            },
            None => read()?,
        };
        let state: TaskState = named(&row, "state")?;
        // A predecessor that was retried after its successor was decided had failed.
        let state = state.outcome().unwrap_or(Outcome::Failed);
        match output {
            Ok(output) => reads.push(ReadTask { key: row.try_get("key")?, state, output }),
            Err(why) => *of_task = Err(Reads::Failed(why)),
        }
    }
    let loaded = all
        .into_iter()
        .map(|(place, reads)| (place, reads.map_or_else(|other| other, |reads| Reads::Some(reads.into()))));
    Ok(loaded.collect())
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
