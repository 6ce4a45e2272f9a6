//! Starting batches, by callers and as tasks of other batches.

use milepost_core::batch::DEPTH_MAX;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::start::{NewBatch, Started, check_fit_of_texts};
use milepost_core::dag::state::BatchState;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::json::Exact;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::trace::Traceparent;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::dag;
use super::head::{Head, TaskId};
use super::settle::Settler;
use crate::error::Failure;
use crate::row;

/// Starts a batch in the caller's transaction: it exists exactly if that transaction commits. If a batch with the same key or id exists,
/// returns that batch and changes nothing.
///
/// # Errors
/// [`StoreError::Batch`] describes the problem; nothing was written then. After any other error the caller must roll back.
pub fn start_batch(tx: &Transaction<'_>, batch: &NewBatch) -> StoreResult<Started> {
    batch.check(PAYLOAD_BYTES_MAX)?;
    start(tx, batch).map_err(|failure| failure.at("start_batch", tx.path().unwrap_or_default()))
}

/// Starts a batch that has been checked.
pub(crate) fn start(conn: &Connection, batch: &NewBatch) -> Result<Started, Failure> {
    match same(conn, batch)? {
        Some(same) => Ok(same),
        None => make(conn, batch, fit(conn, batch)?),
    }
}

/// Starts a batch of this version; its input has been checked.
pub(crate) fn put(conn: &Connection, batch: &NewBatch, version: i64) -> Result<Started, Failure> {
    match same(conn, batch)? {
        Some(same) => Ok(same),
        None => make(conn, batch, version),
    }
}

/// Checks the input and returns the version of a new batch; `None` if the batch already exists.
pub(crate) fn fit_of_new(conn: &Connection, batch: &NewBatch) -> Result<Option<i64>, Failure> {
    if same(conn, batch)?.is_some() { Ok(None) } else { fit(conn, batch).map(Some) }
}

/// Checks the input and returns the version of a new batch. [`StoreError::Batch`] describes why it cannot start.
pub(crate) fn fit(conn: &Connection, batch: &NewBatch) -> Result<i64, Failure> {
    let version = dag::find(conn, &batch.dag, batch.version)?;
    check_input(conn, version, batch.input.get())?;
    Ok(version)
}

/// Returns the existing batch with the same id or key.
fn same(conn: &Connection, batch: &NewBatch) -> Result<Option<Started>, Failure> {
    let same = conn
        .prepare_cached(sql!("batch/same"))?
        .query_row((batch.id.0.as_bytes(), &batch.dag, &batch.key), |row| row::batch_id(row, 0))
        .optional()?;
    Ok(same.map(|batch| Started { batch, duplicate: true }))
}

fn make(conn: &Connection, batch: &NewBatch, version: i64) -> Result<Started, Failure> {
    let input = batch.input.get();
    let place = NewBatchRow {
        id: batch.id,
        dag: &batch.dag,
        version,
        parent: None,
        items_of: None,
        depth: 1,
        nominal: batch.nominal.as_ref(),
        traceparent: batch.traceparent,
    };
    let mut settler = Settler::new(conn);
    let (tasks, roots) = sizes(conn, version)?;
    settler.put_batch(&place, batch.key.as_deref(), (tasks - roots, roots), input)?;
    conn.prepare_cached(sql!("batch/put_tasks"))?.execute((batch.id.0.as_bytes(), version))?;
    settler.finish()?;
    Ok(Started { batch: batch.id, duplicate: false })
}

/// The version of a batch, its parent, and the values that its tasks inherit.
struct NewBatchRow<'a> {
    id: BatchId,
    dag: &'a str,
    version: i64,
    parent: Option<TaskId>,
    items_of: Option<u32>,
    depth: u32,
    nominal: Option<&'a NominalTime>,
    traceparent: Option<Traceparent>,
}

impl<'a> NewBatchRow<'a> {
    /// Returns the values for a batch of items, which runs inside a task and uses the same version.
    fn within(parent: TaskId, head: &'a Head, depth: u32) -> Self {
        NewBatchRow {
            id: parent.batch.inner(),
            dag: &head.dag,
            version: head.version,
            parent: Some(parent),
            items_of: None,
            depth,
            nominal: head.nominal.as_ref(),
            traceparent: head.traceparent,
        }
    }
}

/// Counts the tasks of a version, and those without predecessors.
fn sizes(conn: &Connection, version: i64) -> rusqlite::Result<(i64, i64)> {
    conn.prepare_cached(sql!("batch/roots"))?.query_row([version], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Checks an input against the schema of a version.
pub(super) fn check_input(conn: &Connection, version: i64, input: &str) -> Result<(), Failure> {
    let Some(schema) = dag::input_schema(conn, version)? else { return Ok(()) };
    check_fit_of_texts(&schema, input).map_err(|invalid| Failure::Told(invalid.into()))
}

impl Settler<'_> {
    /// Starts the inner batch of a task; its input has been checked. [`StoreError::Batch`] describes why it cannot start.
    pub(super) fn start_inner(&mut self, parent: TaskId, dag: &str, input: &str) -> Result<BatchId, Failure> {
        let depth = self.depth_below(parent)?;
        let version = dag::find(self.conn, dag, None)?;
        let (tasks, roots) = sizes(self.conn, version)?;
        let head = self.head(parent.batch)?;
        let place = NewBatchRow { dag, version, ..NewBatchRow::within(parent, &head, depth) };
        self.put_batch(&place, None, (tasks - roots, roots), input)?;
        self.conn.prepare_cached(sql!("batch/put_tasks"))?.execute((place.id.0.as_bytes(), version))?;
        Ok(place.id)
    }

    /// Starts the batch for the items that a task iterates over.
    pub(super) fn start_items(&mut self, parent: TaskId, items: Vec<Exact>) -> Result<BatchId, Failure> {
        let depth = self.depth_below(parent)?;
        let head = self.head(parent.batch)?;
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let place =
            NewBatchRow { items_of: Some(parent.number), ..NewBatchRow::within(parent, &head, depth) };
        self.put_batch(&place, None, (0, i64::from(count)), &Exact::list(items).to_string())?;
        let mut put = self.conn.prepare_cached(sql!("batch/put_item"))?;
        for item in 0..count {
            put.execute((place.id.0.as_bytes(), item))?;
        }
        self.page.take(count);
        Ok(place.id)
    }

    fn depth_below(&mut self, parent: TaskId) -> Result<u32, Failure> {
        let depth = self.head(parent.batch)?.depth + 1;
        if depth > DEPTH_MAX {
            return Err(StoreError::Batch(InvalidBatch::TooDeep { depth_max: DEPTH_MAX }).into());
        }
        Ok(depth)
    }

    fn put_batch(
        &mut self,
        place: &NewBatchRow<'_>,
        key: Option<&str>,
        (waiting, due): (i64, i64),
        input: &str,
    ) -> Result<(), Failure> {
        let NewBatchRow { id, dag, version, parent, items_of, depth, nominal, traceparent } = place;
        self.conn.prepare_cached(sql!("batch/put_batch"))?.execute((
            id.0.as_bytes(),
            dag,
            version,
            key,
            waiting,
            due,
            parent.as_ref().map(|parent| parent.batch.0.as_bytes()),
            parent.map(|parent| parent.number),
            items_of,
            depth,
            nominal.map(|nominal| nominal.at.as_millisecond()),
            self.now_ms,
            traceparent.map(|it| it.to_string()),
            nominal.map(|nominal| &nominal.zone),
        ))?;
        self.conn.prepare_cached(sql!("batch/put_input"))?.execute((id.0.as_bytes(), input))?;
        self.note(*id, None, Verb::Create, None, BatchState::Running.as_str(), None)?;
        self.due.insert(*id);
        Ok(())
    }
}
