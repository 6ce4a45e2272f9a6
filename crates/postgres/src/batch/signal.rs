//! Signals for batches.

use milepost_core::audit::{AuditedAction, made_signal};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::wait::{NAMES_LISTED, NewSignal, SignalResult};
use milepost_core::dag::wait::Wait;
use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::PgConnection;

use super::error::signal_error;
use crate::error::store_error;
use crate::row::{self, Decoded};
use crate::session::Session;
use crate::store::PostgresStore;

/// Place that errors name for a caller's transaction.
const CALLERS: &str = "the caller's connection";

/// Sends a signal to a batch in the caller's transaction: it is sent exactly when that transaction commits, and locks nothing.
/// Behind a transaction pooler use [`pooled::signal`](crate::pooled::signal()).
///
/// # Errors
/// [`Batch`](StoreError::Batch) describes the problem: the batch does not exist, no task of it waits for the signal, or the payload does
/// not fit.
pub async fn signal(connection: &mut PgConnection, signal: &NewSignal) -> StoreResult<SignalResult> {
    send_in(Session::lasting(connection), signal).await
}

pub(crate) async fn send_in(mut session: Session<'_>, signal: &NewSignal) -> StoreResult<SignalResult> {
    signal.check()?;
    // A database error aborts the caller's transaction, so everything that can be checked is checked before.
    fit(&mut session, signal).await.map_err(|e| store_error(CALLERS, "signal_batch", e))??;
    send(&mut session, signal).await.map_err(|e| signal_error(CALLERS, signal, e))
}

/// Sends a signal in the transaction of another verb. After a refusal the caller must roll back.
pub(crate) async fn send_within(
    session: &mut Session<'_>,
    signal: &NewSignal,
) -> Decoded<StoreResult<SignalResult>> {
    match fit(session, signal).await? {
        Ok(()) => send(session, signal).await.map(Ok),
        Err(refused) => Ok(Err(refused)),
    }
}

impl PostgresStore {
    /// Sends a signal, with an audit entry if there is an actor.
    pub(super) async fn send(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        signal.check()?;
        let fits = self.inner.intake.run(async |session| fit(session, signal).await).await;
        fits.map_err(|e| self.fail("signal_batch", e))??;
        let action = AuditedAction::signal_batch(signal.batch);
        let tell = |result: &SignalResult| made_signal(signal, *result);
        let send = async |session: &mut Session<'_>| send(session, signal).await;
        let is_new = |result: &SignalResult| *result == SignalResult::Accepted;
        let sent = self.act_confirming(&self.inner.intake, &action, send, tell, is_new).await;
        sent.map_err(|e| signal_error(&self.inner.place, signal, e))
    }
}

async fn send(session: &mut Session<'_>, signal: &NewSignal) -> Decoded<SignalResult> {
    let query = sqlx::query(sql!("batch/signal"))
        .bind(signal.batch.0)
        .bind(signal.name.clone())
        .bind(signal.payload.get().to_owned())
        .bind(signal.id.clone());
    let result: String = session.row(query).await.and_then(row::value)?;
    result.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

/// Checks that a task of the batch waits for the signal, and that its payload fits.
async fn fit(session: &mut Session<'_>, signal: &NewSignal) -> Decoded<StoreResult<()>> {
    let query = sqlx::query(sql!("batch/awaited")).bind(signal.batch.0).bind(signal.name.clone());
    let Some(row) = session.row(query).await? else { return unknown(session, signal).await.map(Err) };
    let spec: String = row::value(Some(row))?;
    let wait: Wait = serde_json::from_str(&spec).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
    let signal = signal.clone();
    let check = move || signal.check_fit(&wait).map_err(StoreError::from);
    tokio::task::spawn_blocking(check).await.map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

/// Returns the error for a signal that no task waits for.
async fn unknown(session: &mut Session<'_>, signal: &NewSignal) -> Decoded<StoreError> {
    let query = sqlx::query(sql!("batch/signal_names")).bind(signal.batch.0).bind(i64::from(NAMES_LISTED));
    let Some(row) = session.row(query).await? else {
        return Ok(InvalidBatch::NoSuchBatch(signal.batch).into());
    };
    let (batch, name) = (signal.batch, signal.name.clone());
    Ok(InvalidBatch::NoSuchSignal { batch, name, known: row::value(Some(row))? }.into())
}
