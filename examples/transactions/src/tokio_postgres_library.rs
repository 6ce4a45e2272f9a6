//! tokio-postgres.

use milepost::sql::{Call, Refusal};
use tokio_postgres::Transaction;

use crate::Failed;

/// Runs a call in this transaction.
///
/// # Errors
/// [`Failed`] with the reason.
pub async fn run<T>(transaction: &Transaction<'_>, call: &Call<T>) -> Result<T, Failed> {
    let row = transaction.query_one(call.sql(), &[&call.arguments()]).await.map_err(failed)?;
    Ok(call.answer(row.get(0))?)
}

fn failed(error: tokio_postgres::Error) -> Failed {
    let refused = error.as_db_error().and_then(|cause| Some((Refusal::of(cause.code().code())?, cause.message())));
    match refused {
        Some((refusal, message)) => Failed::Refused(refusal, message.to_owned()),
        None => Failed::Library(error.to_string()),
    }
}
