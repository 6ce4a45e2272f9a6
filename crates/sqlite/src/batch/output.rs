//! Results of tasks, for the tasks that read them.

use std::rc::Rc;
use std::sync::Arc;

use milepost_core::batch::READ_BYTES_MAX;
use milepost_core::batch::due::ReadTask;
use milepost_core::dag::rule::Outcome;
use milepost_core::dag::state::TaskState;
use milepost_core::ident::BatchId;
use milepost_core::json::Exact;
use milepost_core::sql;
use rusqlite::Connection;
use serde_json::Value;

use super::head::{Head, TaskId};
use crate::error::Failure;
use crate::row;

/// Why results could not be read.
pub(super) enum Unread {
    /// They exceed the limit for one task.
    TooMuch,
    /// The store returned an error.
    Failed(Failure),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Reads results up to the size limit for one task.
pub(super) struct Outputs<'conn> {
    conn: &'conn Connection,
    bytes_left: usize,
}

/// A task and its result.
struct Left {
    key: String,
    state: TaskState,
    child: Option<BatchId>,
    result: Option<String>,
    over_a_list: bool,
}

impl<'conn> Outputs<'conn> {
    pub(super) const fn new(conn: &'conn Connection) -> Self {
        Self { conn, bytes_left: READ_BYTES_MAX }
    }

    /// Returns the result of a predecessor. A predecessor that was retried after its successor was decided counts as failed.
    pub(super) fn read(&mut self, task: TaskId, head: &Head) -> Result<ReadTask, Unread> {
        let left = self.left_by(task, head.version)?;
        let state = left.state.outcome().unwrap_or(Outcome::Failed);
        let output = self.output(&left)?;
        Ok(ReadTask { key: left.key, state, output: Arc::new(output) })
    }

    fn left_by(&self, task: TaskId, version: i64) -> rusqlite::Result<Left> {
        let values = (task.batch.0.as_bytes(), task.number, version);
        self.conn.prepare_cached(sql!("batch/left_by"))?.query_row(values, |row| {
            Ok(Left {
                key: row.get(0)?,
                state: row::word(row, 1)?,
                child: row::batch_opt(row, 2)?,
                result: row.get(3)?,
                over_a_list: row.get(4)?,
            })
        })
    }

    fn output(&mut self, left: &Left) -> Result<Exact, Unread> {
        match left {
            Left { state, .. } if *state != TaskState::Succeeded => Ok(Exact::default()),
            Left { child: Some(child), .. } => self.of_batch(*child),
            // A task over an empty list.
            Left { over_a_list: true, .. } => Ok(Exact::list([])),
            Left { result, .. } => self.parse(result.as_deref()),
        }
    }

    /// Returns the results of items in item order, or those of the last tasks by key.
    fn of_batch(&mut self, batch: BatchId) -> Result<Exact, Unread> {
        let head = Head::load(self.conn, batch)?;
        if head.items_of.is_some() { self.of_items(batch) } else { self.of_last_tasks(batch, &head) }
    }

    fn of_items(&mut self, batch: BatchId) -> Result<Exact, Unread> {
        let mut statement = self.conn.prepare_cached(sql!("batch/left_by_items"))?;
        let mut rows = statement.query([batch.0.as_bytes()])?;
        let mut results = Vec::new();
        while let Some(row) = rows.next()? {
            results.push(self.parse(row.get_ref(0)?.as_str_or_null().map_err(rusqlite::Error::from)?)?);
        }
        Ok(Exact::list(results))
    }

    fn of_last_tasks(&mut self, batch: BatchId, head: &Rc<Head>) -> Result<Exact, Unread> {
        let mut statement = self.conn.prepare_cached(sql!("batch/last_tasks"))?;
        let last =
            statement.query_map([head.version], |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut results = Vec::new();
        for number in last {
            let left = self.left_by(TaskId { batch, number }, head.version)?;
            let output = self.output(&left)?;
            results.push((left.key, output));
        }
        Ok(Exact::object(results))
    }

    fn parse(&mut self, result: Option<&str>) -> Result<Exact, Unread> {
        let text = result.unwrap_or("null");
        self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or(Unread::TooMuch)?;
        // Text that is not JSON can only come from another program.
        Ok(Exact::read(text).unwrap_or_else(|_| Value::from(text).into()))
    }
}
