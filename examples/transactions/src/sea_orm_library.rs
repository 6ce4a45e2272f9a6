//! sea-orm, on sqlx.

use milepost::sql::{Call, Refusal};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, Statement, sqlx};

use crate::Failed;

/// Runs a call in this transaction.
///
/// # Errors
/// [`Failed`] with the reason.
pub async fn run<T>(transaction: &DatabaseTransaction, call: &Call<T>) -> Result<T, Failed> {
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, call.sql(), [call.arguments().into()]);
    let row = transaction.query_one_raw(statement).await.map_err(failed)?;
    let row = row.ok_or_else(|| Failed::Library("there is no row".to_owned()))?;
    let answer: String = row.try_get_by_index(0).map_err(failed)?;
    Ok(call.answer(&answer)?)
}

fn failed(error: DbErr) -> Failed {
    let (DbErr::Query(RuntimeErr::SqlxError(reason)) | DbErr::Exec(RuntimeErr::SqlxError(reason))) = &error else {
        return Failed::Library(error.to_string());
    };
    let refused = match reason.as_ref() {
        sqlx::Error::Database(cause) => cause.code().and_then(|code| Some((Refusal::of(&code)?, cause.message().to_owned()))),
        _ => None,
    };
    refused.map_or_else(|| Failed::Library(error.to_string()), |(refusal, message)| Failed::Refused(refusal, message))
}
