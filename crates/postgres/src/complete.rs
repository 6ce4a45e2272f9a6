//! Completion of a job in the handler's own transaction, so that its effects and its success are one commit.

use milepost_core::error::StoreError;
use milepost_core::finish::check_result;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::PgConnection;

use crate::error::store_error;
use crate::row;
use crate::session::Session;

/// Ends the run as succeeded in the caller's transaction; `result` is JSON text. Behind a transaction pooler use
/// [`pooled::complete`](crate::pooled::complete).
///
/// # Errors
/// [`Fenced`](StoreError::Fenced) when the job is no longer held by this run: the caller must roll back.
pub async fn complete(connection: &mut PgConnection, run: Run, result: Option<&str>) -> StoreResult<()> {
    complete_in(Session::lasting(connection), run, result).await
}

pub(crate) async fn complete_in(mut session: Session<'_>, run: Run, result: Option<&str>) -> StoreResult<()> {
    // The SQL function checks the additional rules for results of tasks.
    result
        .map_or(Ok(()), |result| check_result(result, false))
        .map_err(|failure| StoreError::Refused { verb: "complete", cause: failure.message.into() })?;
    let query = sqlx::query(sql!("complete")).bind(run.job.0).bind(run.token.0).bind(result);
    let accepted = session.row(query).await.and_then(row::value::<bool>);
    let accepted = accepted.map_err(|e| store_error("the caller's connection", "complete", e))?;
    if accepted { Ok(()) } else { Err(StoreError::Fenced(run)) }
}
