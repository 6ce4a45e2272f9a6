//! Completing a job in the handler's own transaction, so that its effects and its success are one commit.

use milepost_core::error::StoreError;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::store_error;
use crate::statement;

/// Ends the run as succeeded in the caller's transaction; `result` is JSON text.
///
/// # Errors
/// [`Fenced`](StoreError::Fenced) when the job has moved on: the caller must roll back.
pub async fn complete(connection: &mut PgConnection, run: Run, result: Option<&str>) -> StoreResult<()> {
    let fail = |e| store_error("the caller's connection", "complete", e);
    let accepted: Vec<Uuid> = sqlx::query_scalar(statement::FINISH_SUCCEEDED)
        .bind(vec![run.job.0])
        .bind(vec![run.token.0])
        .bind(vec![result])
        .fetch_all(&mut *connection)
        .await
        .map_err(fail)?;
    if accepted.is_empty() {
        return Err(StoreError::Fenced(run));
    }
    sqlx::query(statement::FREE_GROUPS)
        .bind(accepted)
        .execute(&mut *connection)
        .await
        .map_err(fail)?;
    Ok(())
}
