//! Evaluation of due tasks: the job, the inner batch or the final state that a due task gets.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use milepost_core::batch::due::{
    Becomes, CANNOT_START, CONDITION_IS_FALSE, DueTask, EXPRESSION, Effort, LARGE_MAX, LARGE_OF_BATCH_MAX,
    reads_too_much, unreadable,
};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::dag::definition::Task;
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::finish::Failure as Why;
use milepost_core::ident::BatchId;
use milepost_core::job::NewJob;
use milepost_core::json::Exact;
use milepost_core::sql;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::dag;
use super::head::{Head, TaskId};
use super::output::{Outputs, Unread};
use super::settle::{Made, Settler};
use crate::bulk::definition_of;
use crate::error::{Failure, defect};
use crate::row::{self, Id};

/// How many due tasks are read at a time.
const LOOK: u32 = 100;

impl Settler<'_> {
    /// Evaluates due tasks of a batch. Tasks whose evaluation takes long stay due.
    pub(super) fn work_out(&mut self, batch: BatchId) -> Result<(), Failure> {
        let head = self.head(batch)?;
        if head.stopped {
            return Ok(());
        }
        let mut statement = self.conn.prepare_cached(sql!("batch/due_tasks"))?;
        let due = statement.query_map((batch.0.as_bytes(), LOOK), |row| row.get(0))?;
        let due = due.collect::<rusqlite::Result<Vec<u32>>>()?;
        let mut desk = Desk::new(self.conn, batch, head);
        let mut large = 0;
        for &number in &due {
            // The other tasks wait, so that tasks of other batches are evaluated, too.
            if self.page.is_over() || large >= LARGE_OF_BATCH_MAX {
                return Ok(());
            }
            self.page.take(1);
            self.looked += 1;
            let task = TaskId { batch, number };
            match desk.look_at(number)? {
                Look::Plain => self.make_job(task, TaskState::Due, None)?,
                Look::Unreadable(why) => self.fail(task, &why)?,
                Look::Task(due) => {
                    large += usize::from(!self.work_out_little(task, &due)?);
                    desk.keep(*due);
                }
            }
        }
        // Otherwise the next read would return the same tasks.
        if large == 0 && due.len() == LOOK as usize {
            self.due.insert(batch);
        }
        Ok(())
    }

    /// Evaluates a task if that takes little work; returns whether it was evaluated.
    fn work_out_little(&mut self, task: TaskId, due: &DueTask) -> Result<bool, Failure> {
        if let Some(becomes) = due.becomes(Effort::Little) {
            self.become_this(task, due, becomes)?;
            return Ok(true);
        }
        self.looked -= 1;
        if self.large.len() < LARGE_MAX {
            self.large.push(due.clone());
        }
        Ok(false)
    }

    /// Applies the result of a task that was evaluated outside of the transaction, unless anything that it read has changed since.
    pub(super) fn become_as_worked_out(&mut self, was: &DueTask, becomes: Becomes) -> Result<(), Failure> {
        let task = TaskId { batch: was.batch, number: was.task };
        let head = self.head(was.batch)?;
        let mut is_due = self.conn.prepare_cached(sql!("batch/is_due"))?;
        if head.stopped || !is_due.exists((was.batch.0.as_bytes(), was.task))? {
            return Ok(());
        }
        match Desk::new(self.conn, was.batch, head).look_at(was.task)? {
            Look::Task(is) if *is == *was => {
                self.looked += 1;
                self.become_this(task, was, becomes)
            }
            _ => Ok(()),
        }
    }

    fn become_this(&mut self, task: TaskId, due: &DueTask, becomes: Becomes) -> Result<(), Failure> {
        match becomes {
            Becomes::Skipped => self.skip(task, TaskState::Due, CONDITION_IS_FALSE),
            Becomes::Failed(why) => self.fail(task, &why),
            Becomes::Job(payload) => self.make_job(task, TaskState::Due, Some(payload.to_string())),
            Becomes::Items(items) if items.is_empty() => {
                let note = Some("its list is empty");
                self.end_without_job(task, TaskState::Due, TaskState::Succeeded, Verb::Succeed, note)
            }
            Becomes::Items(items) => {
                let child = self.start_items(task, items);
                self.go_on_as(task, child)
            }
            Becomes::Batch(input) => {
                let dag = due.spec.dag.as_deref().unwrap_or_default();
                let child = self.start_inner(task, dag, &input.to_string());
                self.go_on_as(task, child)
            }
            Becomes::Wait(awaited) => self.begin_wait(task, &awaited),
            Becomes::Bulk(payload) => {
                self.start_bulk(task, due.spec.bulk.as_deref().unwrap_or_default(), &payload)
            }
        }
    }

    /// Makes this batch the inner batch of the task; if the batch could not be started, the task fails.
    fn go_on_as(&mut self, task: TaskId, child: Result<BatchId, Failure>) -> Result<(), Failure> {
        match child {
            Ok(child) => self.turn(task, TaskState::Due, TaskState::Active, Made::Batch(child)),
            Err(Failure::Told(StoreError::Batch(invalid))) => self.cannot_start(task, invalid.to_string()),
            Err(failure) => Err(failure),
        }
    }

    fn start_bulk(&mut self, task: TaskId, name: &str, payload: &Exact) -> Result<(), Failure> {
        let Some(definition) = definition_of(self.conn, name)? else {
            let message =
                format!("there is no bulk job {name:?}; `milepost bulk list` shows the existing ones");
            return self.cannot_start(task, message);
        };
        // The members of the payload object are the bulk job's parameters.
        let text = payload.to_string();
        let given = Parameters::read(&text).unwrap_or_default();
        if let Err(missing) = definition.check_parameters(&given) {
            return self.cannot_start(task, missing.to_string());
        }
        let job = match NewJob::from_json(name, text) {
            Ok(job) => definition.direct(job),
            Err(invalid) => return self.cannot_start(task, invalid.to_string()),
        };
        self.accept(task, TaskState::Due, &job)?;
        self.conn.prepare_cached(sql!("bulk/begin_run"))?.execute((Id(&job.id), None::<Id<'_>>))?;
        Ok(())
    }

    fn cannot_start(&mut self, task: TaskId, message: String) -> Result<(), Failure> {
        self.fail(task, &Why { code: CANNOT_START.to_owned(), message })
    }

    fn fail(&mut self, task: TaskId, why: &Why) -> Result<(), Failure> {
        let note = format!("{}: {}", why.code, why.message);
        self.end_without_job(task, TaskState::Due, TaskState::Failed, Verb::Fail, Some(&note))
    }
}

/// A due task as it is stored.
enum Look {
    /// Its job is complete in the definition; nothing has to be evaluated.
    Plain,
    Task(Box<DueTask>),
    Unreadable(Why),
}

/// The due tasks of one batch, and the data that they share.
struct Desk<'conn> {
    conn: &'conn Connection,
    batch: BatchId,
    head: Rc<Head>,
    /// The input of the batch, loaded when the first task needs it.
    input: Option<Arc<Exact>>,
    /// Only in a batch of items: the data that all items share, and the items.
    items: Option<Result<(DueTask, Vec<Exact>), Why>>,
    /// The items, while one of them is evaluated.
    list: Vec<Exact>,
}

impl<'conn> Desk<'conn> {
    const fn new(conn: &'conn Connection, batch: BatchId, head: Rc<Head>) -> Self {
        Self { conn, batch, head, input: None, items: None, list: Vec::new() }
    }

    fn look_at(&mut self, number: u32) -> Result<Look, Failure> {
        if self.head.items_of.is_some() {
            return self.look_at_item(number);
        }
        let asked = Asked::load(self.conn, self.head.version, number)?;
        if asked.plain {
            return Ok(Look::Plain);
        }
        let input = match self.input.take() {
            Some(input) => input,
            None => match input_of(self.conn, self.batch)? {
                Ok(input) => Arc::new(input),
                Err(why) => return Ok(Look::Unreadable(why)),
            },
        };
        let task = TaskId { batch: self.batch, number };
        Ok(asked
            .due(self.conn, task, &self.head, input)?
            .map_or_else(Look::Unreadable, |due| Look::Task(Box::new(due))))
    }

    fn look_at_item(&mut self, number: u32) -> Result<Look, Failure> {
        let items = match self.items.take() {
            Some(items) => items,
            None => self.load_items()?,
        };
        Ok(match items {
            Ok((mut due, mut list)) => {
                let item = list.get_mut(number as usize).map(mem::take).unwrap_or_default();
                (due.task, due.item) = (number, Some((item, number)));
                self.list = list;
                Look::Task(Box::new(due))
            }
            Err(why) => {
                self.items = Some(Err(why.clone()));
                Look::Unreadable(why)
            }
        })
    }

    /// Keeps the loaded data for the next task.
    fn keep(&mut self, due: DueTask) {
        match due.item {
            Some(_) => self.items = Some(Ok((due, mem::take(&mut self.list)))),
            None => self.input = Some(due.input),
        }
    }

    /// Loads the data of the task that iterates over the list, and the list.
    fn load_items(&self) -> Result<Result<(DueTask, Vec<Exact>), Why>, Failure> {
        let Some((outer, number)) = self.head.outer.zip(self.head.items_of) else {
            return Err(defect("advance_batches", format!("batch {} is not over a list", self.batch)).into());
        };
        let head = Head::load(self.conn, outer)?;
        let asked = Asked::load(self.conn, self.head.version, number)?.read_in(
            self.conn,
            self.head.version,
            head.version,
        )?;
        let (list, input) = match (input_of(self.conn, self.batch)?, input_of(self.conn, outer)?) {
            (Ok(list), Ok(input)) => (list, input),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        let list = list
            .into_items()
            .map_err(|_| defect("advance_batches", format!("batch {} has no list", self.batch)))?;
        let task = TaskId { batch: outer, number };
        let input = Arc::new(input);
        Ok(asked.due(self.conn, task, &head, input)?.map(|due| (DueTask { batch: self.batch, ..due }, list)))
    }
}

/// The definition of a task in a version.
struct Asked {
    plain: bool,
    reads: Vec<u32>,
    spec: String,
}

impl Asked {
    fn load(conn: &Connection, version: i64, number: u32) -> rusqlite::Result<Self> {
        conn.prepare_cached(sql!("batch/due_task"))?.query_row((version, number), |row| {
            Ok(Self { plain: row.get(0)?, reads: row::numbers(row, 1)?, spec: row.get(2)? })
        })
    }

    /// Translates the task numbers that it reads if the batch with those tasks has switched to another version since. Tasks that the new
    /// version does not contain are omitted.
    fn read_in(self, conn: &Connection, version: i64, by_now: i64) -> rusqlite::Result<Self> {
        if version == by_now {
            return Ok(self);
        }
        let mut number_in = conn.prepare_cached(sql!("batch/number_in"))?;
        let mut reads = Vec::new();
        for number in &self.reads {
            let number = number_in.query_row((version, number, by_now), |row| row.get::<_, u32>(0));
            reads.extend(number.optional()?);
        }
        Ok(Self { reads, ..self })
    }

    /// Returns the task with all the data that it reads.
    fn due(
        self,
        conn: &Connection,
        task: TaskId,
        head: &Head,
        input: Arc<Exact>,
    ) -> Result<Result<DueTask, Why>, Failure> {
        let spec: Task = match serde_json::from_str(&self.spec) {
            Ok(spec) => spec,
            Err(error) => {
                let message = format!("the stored task cannot be parsed: {error}");
                return Ok(Err(Why { code: EXPRESSION.to_owned(), message }));
            }
        };
        let mut outputs = Outputs::new(conn);
        let reads = self.reads.iter().map(|&number| outputs.read(TaskId { number, ..task }, head));
        match reads.collect::<Result<Vec<_>, _>>() {
            Ok(reads) => {
                let nominal = head.nominal.clone();
                let schema = schema_of(conn, spec.dag.as_deref())?;
                Ok(Ok(DueTask {
                    batch: task.batch,
                    task: task.number,
                    spec: Arc::new(spec),
                    input,
                    nominal,
                    predecessors: reads.into(),
                    item: None,
                    schema: schema.map(Arc::new),
                }))
            }
            Err(Unread::TooMuch) => Ok(Err(reads_too_much())),
            Err(Unread::Failed(failure)) => Err(failure),
        }
    }
}

/// Returns the input schema of the DAG that a task names.
fn schema_of(conn: &Connection, dag: Option<&str>) -> Result<Option<Value>, Failure> {
    let Some(dag) = dag else { return Ok(None) };
    // A missing DAG is reported when the batch starts.
    let version = match dag::find(conn, dag, None) {
        Ok(version) => version,
        Err(Failure::Told(StoreError::Batch(InvalidBatch::NoSuchDag { .. }))) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let Some(schema) = dag::input_schema(conn, version)? else { return Ok(None) };
    let schema = serde_json::from_str(&schema);
    Ok(Some(schema.map_err(|error| {
        defect("advance_batches", format!("the schema of {dag:?} cannot be parsed: {error}"))
    })?))
}

/// Returns the input of a batch. An input that cannot be parsed fails only the tasks that read it.
fn input_of(conn: &Connection, batch: BatchId) -> Result<Result<Exact, Why>, Failure> {
    let mut statement = conn.prepare_cached(sql!("batch/input"))?;
    let input = statement.query_row([batch.0.as_bytes()], |row| {
        Ok(Exact::read(row.get_ref(0)?.as_str()?).map_err(|error| unreadable(&error)))
    })?;
    Ok(input)
}
