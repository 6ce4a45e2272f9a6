//! Completing a job in the handler's own transaction, so that its effects and its success are one commit.

use milepost_core::error::StoreError;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use sqlx::PgConnection;

use crate::error::store_error;
use crate::statement;

/// Ends the run as succeeded in the caller's transaction; `result` is JSON text.
///
/// # Errors
/// [`Fenced`](StoreError::Fenced) when the job has moved on: the caller must roll back.
pub async fn complete(connection: &mut PgConnection, run: Run, result: Option<&str>) -> StoreResult<()> {
    let accepted: bool = sqlx::query_scalar(statement::COMPLETE)
        .bind(run.job.0)
        .bind(run.token.0)
        .bind(result)
        .fetch_one(connection)
        .await
        .map_err(|e| store_error("the caller's connection", "complete", e))?;
    if accepted { Ok(()) } else { Err(StoreError::Fenced(run)) }
}
