//! Start of batches.

use milepost_core::audit::{AuditedAction, made_batch};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::start::{NewBatch, Started, check_fit_of_texts};
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::{PgConnection, Row};

use super::due::work_out;
use super::error::{is_for_schema, start_error};
use crate::error::store_error;
use crate::row::Decoded;
use crate::session::Session;
use crate::store::PostgresStore;

/// Place that errors name for a caller's transaction.
const CALLERS: &str = "the caller's connection";

/// Starts a batch in the caller's transaction: the batch and all its tasks exist exactly when that transaction commits.
/// Behind a transaction pooler use [`pooled::start_batch`](crate::pooled::start_batch).
///
/// # Errors
/// [`Batch`](StoreError::Batch) describes the problem: the DAG or version does not exist, or the input does not match its
/// schema.
pub async fn start_batch(connection: &mut PgConnection, batch: &NewBatch) -> StoreResult<Started> {
    start_in(Session::lasting(connection), batch).await
}

pub(crate) async fn start_in(mut session: Session<'_>, batch: &NewBatch) -> StoreResult<Started> {
    batch.check(PAYLOAD_BYTES_MAX)?;
    // A database error aborts the caller's transaction, so everything that can be checked is checked before.
    let version = fit(&mut session, batch).await.map_err(|e| store_error(CALLERS, "start_batch", e))??;
    let version = Some(version.to_string());
    let started = start(&mut session, batch, version.clone(), true).await;
    started.map_err(|e| start_error(CALLERS, &batch.dag, version, e))
}

/// Starts a batch in the transaction of another verb. After a refusal the caller must roll back.
pub(crate) async fn start_within(
    session: &mut Session<'_>,
    batch: &NewBatch,
) -> Decoded<StoreResult<Started>> {
    match fit(session, batch).await? {
        Ok(version) => start(session, batch, Some(version.to_string()), true).await.map(Ok),
        Err(refused) => Ok(Err(refused)),
    }
}

impl PostgresStore {
    /// Starts a batch, with an audit entry if there is an actor.
    pub(crate) async fn start(&self, action: &AuditedAction, batch: &NewBatch) -> StoreResult<Started> {
        batch.check(self.inner.options.payload_bytes_max)?;
        let version = batch.version.map(|version| version.to_string());
        let fail = |e| start_error(&self.inner.place, &batch.dag, version.clone(), e);
        let intake = &self.inner.intake;
        let tell = |started: &Started| made_batch(&batch.dag, *started);
        let unchecked = async |tx: &mut Session<'_>| {
            self.noted(tx, action, async |tx| start(tx, batch, version.clone(), false).await, tell).await
        };
        match intake.atomically(unchecked).await {
            Err(error) if is_for_schema(&error) => {}
            started => return started.map_err(fail),
        }
        let checked = async |tx: &mut Session<'_>| match fit(tx, batch).await? {
            Ok(version) => {
                let version = Some(version.to_string());
                let start = async |tx: &mut Session<'_>| start(tx, batch, version, true).await;
                self.noted(tx, action, start, tell).await.map(Ok)
            }
            Err(refused) => Ok(Err(refused)),
        };
        intake.atomically(checked).await.map_err(fail)?
    }
}

/// Returns the version that the batch will have, after checking that the input matches the schema of that version.
pub(crate) async fn fit(session: &mut Session<'_>, batch: &NewBatch) -> Decoded<StoreResult<Version>> {
    let version = batch.version.map(|version| version.to_string());
    let query = sqlx::query(sql!("batch/schema")).bind(batch.dag.clone()).bind(version.clone());
    let Some(row) = session.row(query).await? else {
        let name = batch.dag.clone();
        return Ok(Err(match version {
            None => InvalidBatch::NoSuchDag { name },
            Some(version) => InvalidBatch::NoSuchVersion { name, version },
        }
        .into()));
    };
    let found: &str = row.try_get("version")?;
    let found = found.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
    Ok(check_input(row.try_get("input_schema")?, batch.input.get().to_owned()).await?.map(|()| found))
}

/// Checks an input against the schema of a version, if it has one. Runs on a blocking thread, since it can take long.
pub(super) async fn check_input(schema: Option<String>, input: String) -> Decoded<StoreResult<()>> {
    let Some(schema) = schema else { return Ok(Ok(())) };
    let check = move || check_fit_of_texts(&schema, &input).map_err(StoreError::from);
    tokio::task::spawn_blocking(check).await.map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

async fn start(
    session: &mut Session<'_>,
    batch: &NewBatch,
    version: Option<String>,
    input_checked: bool,
) -> Decoded<Started> {
    let query = sqlx::query(sql!("batch/start"))
        .bind(batch.dag.clone())
        .bind(batch.key.clone())
        .bind(batch.input.get().to_owned())
        .bind(version)
        .bind(input_checked)
        .bind(batch.id.0)
        .bind(batch.nominal.as_ref().map(|nominal| jiff_sqlx::Timestamp::from(nominal.at)))
        .bind(batch.traceparent.map(|it| it.to_string()))
        .bind(batch.nominal.as_ref().map(|nominal| nominal.zone.clone()));
    let row = session.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
    let started = Started { batch: BatchId(row.try_get("batch_id")?), duplicate: row.try_get("duplicate")? };
    if row.try_get::<i32, _>("due_made")? > 0 {
        if row.try_get("may_release")? {
            work_out(session, Some(&[started.batch.0])).await?;
        } else {
            // An application has no right to change tasks, so a worker evaluates the due ones.
            session.execute(sqlx::query(sql!("batch/wake_to_advance"))).await?;
        }
    }
    Ok(started)
}
