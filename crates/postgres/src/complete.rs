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
    let accepted: Option<(Uuid, bool)> = sqlx::query_as(statement::FINISH_SUCCEEDED)
        .bind([run.job.0].as_slice())
        .bind([run.token.0].as_slice())
        .bind([result].as_slice())
        .fetch_optional(&mut *connection)
        .await
        .map_err(fail)?;
    let Some((job, grouped)) = accepted else { return Err(StoreError::Fenced(run)) };
    if grouped {
        sqlx::query(statement::FREE_GROUPS).bind(vec![job]).execute(&mut *connection).await.map_err(fail)?;
    }
    Ok(())
}
