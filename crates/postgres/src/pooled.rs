//! What joins a caller's transaction, behind a transaction pooler.
//!
//! A pooler such as PgBouncer in transaction mode gives every transaction another server connection. Statements
//! that the driver prepared under a name on one are missing on the next, or there already. The functions here are
//! those of the crate's root but for that: their statements have no names. They cost a message to the server more.
//!
//! The connection must be in a transaction, and the caller's own statements need the same care:
//! `sqlx::query(…).persistent(false)`. A pooler that follows prepared statements itself (PgBouncer from 1.21, with
//! `max_prepared_statements` above 0) needs none of this.

use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::ident::Run;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::StoreResult;
use sqlx::PgConnection;

use crate::session::Session;

/// Enqueues one job in the caller's transaction, as [`enqueue`](crate::enqueue).
///
/// # Errors
/// Those of [`enqueue`](crate::enqueue).
pub async fn enqueue(connection: &mut PgConnection, job: &NewJob) -> StoreResult<Enqueued> {
    crate::enqueue::enqueue_in(Session::passing(connection), job).await
}

/// Enqueues jobs in the caller's transaction, as [`enqueue_many`](crate::enqueue_many).
///
/// # Errors
/// Those of [`enqueue_many`](crate::enqueue_many).
pub async fn enqueue_many(connection: &mut PgConnection, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
    crate::enqueue::enqueue_many_in(Session::passing(connection), jobs).await
}

/// Emits one event in the caller's transaction, as [`emit`](crate::emit).
///
/// # Errors
/// Those of [`emit`](crate::emit).
pub async fn emit(connection: &mut PgConnection, event: &NewEvent) -> StoreResult<Emitted> {
    crate::event::emit_in(Session::passing(connection), event).await
}

/// Emits events in the caller's transaction, as [`emit_many`](crate::emit_many).
///
/// # Errors
/// Those of [`emit_many`](crate::emit_many).
pub async fn emit_many(connection: &mut PgConnection, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
    crate::event::emit_many_in(Session::passing(connection), events).await
}

/// Starts a batch in the caller's transaction, as [`start_batch`](crate::start_batch).
///
/// # Errors
/// Those of [`start_batch`](crate::start_batch).
pub async fn start_batch(connection: &mut PgConnection, batch: &NewBatch) -> StoreResult<Started> {
    crate::batch::start_in(Session::passing(connection), batch).await
}

/// Ends the run as succeeded in the caller's transaction, as [`complete`](crate::complete).
///
/// # Errors
/// Those of [`complete`](crate::complete).
pub async fn complete(connection: &mut PgConnection, run: Run, result: Option<&str>) -> StoreResult<()> {
    crate::complete::complete_in(Session::passing(connection), run, result).await
}
