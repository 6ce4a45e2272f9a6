//! Due tasks as they are stored, with the data that their expressions read.

use std::collections::HashMap;
use std::sync::Arc;

use milepost_core::batch::due::{DueTask, ReadTask, reads_too_much, unreadable};
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::{READ_BYTES_MAX, ROUND_READ_BYTES_MAX};
use milepost_core::dag::definition::Task;
use milepost_core::dag::rule::Outcome;
use milepost_core::dag::state::TaskState;
use milepost_core::finish::Failure;
use milepost_core::ident::BatchId;
use milepost_core::json::Exact;
use milepost_core::sql;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::row::{self, Decoded, named};
use crate::session::Session;

/// A task, by its batch and number.
pub(super) type TaskId = (Uuid, i32);

/// A due task, or the reason why it cannot be evaluated.
pub(super) type Due = (TaskId, Result<DueTask, Failure>);

/// Locks due tasks of all batches, of these batches, or these tasks (`batches` and `tasks` are then parallel arrays), and
/// loads the data that they read.
pub(super) async fn take(
    session: &mut Session<'_>,
    batches: Option<&[Uuid]>,
    tasks: Option<Vec<i32>>,
    most: i64,
) -> Decoded<Vec<Due>> {
    // Tasks that are named were within the limit when they were read first.
    let bytes_max = if tasks.is_some() { usize::MAX } else { ROUND_READ_BYTES_MAX };
    let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let query = sqlx::query(sql!("batch/due"))
        .bind(batches.map(<[Uuid]>::to_vec))
        .bind(most)
        .bind(tasks)
        .bind(bytes_max);
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
        if let Ok(Some(schema)) = schema(row) {
            self.schemas.insert(row.try_get("dag")?, Arc::new(schema));
        }
        self.batches.entry(batch).or_insert_with(|| BatchData::read(row).map_err(|error| unreadable(&error)));
        if let Some(text) = row.try_get::<Option<&str>, _>("spec")? {
            let spec = serde_json::from_str::<Task>(text).map_err(|error| unreadable(&error));
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
