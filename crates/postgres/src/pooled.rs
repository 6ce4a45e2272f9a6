//! Functions that join a caller's transaction behind a transaction pooler.
//!
//! A pooler such as PgBouncer in transaction mode may use another server connection for each transaction. A statement that
//! the driver prepared under a name on one connection is missing on the next, or its name is already used there. The
//! functions in this module are those of the crate's root with unnamed statements. They cost one more message to the server.
//!
//! The connection must be in a transaction, and the caller's own statements need `sqlx::query(…).persistent(false)` too. A
//! pooler that tracks prepared statements (PgBouncer from 1.21, with `max_prepared_statements` above 0) needs none of this.

use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::event::{Aggregate, Emitted, Event, NewEvent};
use milepost_core::ident::{EventId, Run};
use milepost_core::inbox::Received;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::StoreResult;
use sqlx::PgConnection;

use crate::session::Session;

/// Enqueues one job in the caller's transaction, as [`enqueue`](crate::enqueue()).
///
/// # Errors
/// Those of [`enqueue`](crate::enqueue()).
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

/// Records that a consumer processes this event, in the caller's transaction, as [`once`](crate::once).
///
/// # Errors
/// Those of [`once`](crate::once).
pub async fn once(connection: &mut PgConnection, consumer: &str, event: EventId) -> StoreResult<bool> {
    crate::inbox::once_in(Session::passing(connection), consumer, event).await
}

/// Receives an event in the caller's transaction, as [`receive`](crate::receive).
///
/// # Errors
/// Those of [`receive`](crate::receive).
pub async fn receive(connection: &mut PgConnection, consumer: &str, event: &Event) -> StoreResult<Received> {
    crate::inbox::receive_in(Session::passing(connection), consumer, event).await
}

/// Receives the next kept event in the caller's transaction, as [`next_parked`](crate::next_parked).
///
/// # Errors
/// Those of [`next_parked`](crate::next_parked).
pub async fn next_parked(
    connection: &mut PgConnection,
    consumer: &str,
    aggregate: &Aggregate,
) -> StoreResult<Option<Event>> {
    crate::inbox::next_parked_in(Session::passing(connection), consumer, aggregate).await
}

/// Sets the first sequence number that a consumer receives, in the caller's transaction, as
/// [`expect_from`](crate::expect_from).
///
/// # Errors
/// Those of [`expect_from`](crate::expect_from).
pub async fn expect_from(
    connection: &mut PgConnection,
    consumer: &str,
    aggregate: &Aggregate,
    sequence: i64,
) -> StoreResult<bool> {
    crate::inbox::expect_from_in(Session::passing(connection), consumer, aggregate, sequence).await
}

/// Starts a batch in the caller's transaction, as [`start_batch`](crate::start_batch).
///
/// # Errors
/// Those of [`start_batch`](crate::start_batch).
pub async fn start_batch(connection: &mut PgConnection, batch: &NewBatch) -> StoreResult<Started> {
    crate::batch::start_in(Session::passing(connection), batch).await
}

/// Ends the run as succeeded in the caller's transaction, as [`complete`](crate::complete()).
///
/// # Errors
/// Those of [`complete`](crate::complete()).
pub async fn complete(connection: &mut PgConnection, run: Run, result: Option<&str>) -> StoreResult<()> {
    crate::complete::complete_in(Session::passing(connection), run, result).await
}

/// Sends a signal to a batch in the caller's transaction, as [`signal`](crate::signal()).
///
/// # Errors
/// Those of [`signal`](crate::signal()).
pub async fn signal(connection: &mut PgConnection, signal: &NewSignal) -> StoreResult<SignalResult> {
    crate::batch::send_in(Session::passing(connection), signal).await
}
