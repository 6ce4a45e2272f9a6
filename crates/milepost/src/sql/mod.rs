//! Calls in a transaction of any PostgreSQL library.
//!
//! `milepost-postgres` accepts transactions of sqlx, and `milepost-sqlite` those of rusqlite. A program that uses another library runs the
//! statement of a [`Call`] on its own transaction: it has one parameter of type `text`, and returns one row with one column, `answer`, of type `text`.
//! That is all that a library has to do, so that no version of it must fit. With tokio-postgres:
//!
//! ```text
//! async fn run<T>(tx: &tokio_postgres::Transaction<'_>, call: Call<T>) -> Result<T, Error> {
//!     let row = tx.query_one(call.sql(), &[&call.arguments()]).await?;
//!     Ok(call.answer(row.get(0))?)
//! }
//!
//! run(&tx, sql::enqueue(&Mail { to }.to_job()?)?).await?;
//! tx.commit().await?;
//! ```
//!
//! `examples/transactions` has these lines for tokio-postgres, diesel, diesel-async and sea-orm. A job exists exactly when the transaction
//! commits. An error of PostgreSQL aborts the transaction; [`Refusal`] names the reason if Milepost refused the call.

mod calls;
mod refusal;

use std::fmt;

use milepost_core::port::StoreResult;
use serde::de::DeserializeOwned;

pub use self::calls::{
    BulkRun, cancel, complete, emit, emit_many, enqueue, enqueue_many, next_parked, once, receive, signal,
    start_batch, start_bulk,
};
pub use self::refusal::Refusal;

/// The statement of a call, its argument, and the conversion of its result.
pub struct Call<T> {
    sql: &'static str,
    arguments: String,
    convert: Convert<T>,
}

/// Converts the text of a result.
type Convert<T> = fn(&str) -> Result<T, UnknownAnswer>;

/// A result that this version of the library does not know: the store has a newer schema, or another statement was run.
#[derive(Debug, thiserror::Error)]
#[error("the result of the statement is not that of the call: {0}")]
pub struct UnknownAnswer(#[from] serde_json::Error);

impl<T> Call<T> {
    /// Returns the statement. It is constant for each function, so that a library can keep it prepared.
    #[must_use]
    pub const fn sql(&self) -> &'static str {
        self.sql
    }

    /// Returns the value of its parameter `$1`, of type `text`.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Converts the value of the only column of the only row, of type `text`.
    ///
    /// # Errors
    /// [`UnknownAnswer`] when it is not a result of this statement.
    pub fn answer(&self, text: &str) -> Result<T, UnknownAnswer> {
        (self.convert)(text)
    }
}

// Arguments contain payloads.
impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("sql", &self.sql).finish_non_exhaustive()
    }
}

fn parsed<A: DeserializeOwned>(text: &str) -> Result<A, UnknownAnswer> {
    Ok(serde_json::from_str(text)?)
}

fn argument(value: &impl serde::Serialize) -> StoreResult<String> {
    let not_json = |error: serde_json::Error| milepost_core::error::StoreError::Database {
        verb: "sql",
        cause: format!("the arguments cannot be written as JSON: {error}").into(),
    };
    serde_json::to_string(value).map_err(not_json)
}
