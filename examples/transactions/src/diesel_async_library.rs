//! diesel-async. Its errors have no SQLSTATE: the message names the fault.

use diesel::sql_query;
use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use milepost::sql::Call;

use crate::Failed;
use crate::diesel_library::Answer;

/// Runs a call in the transaction of this connection.
///
/// # Errors
/// [`Failed`] with the reason.
pub async fn run<T>(connection: &mut AsyncPgConnection, call: &Call<T>) -> Result<T, Failed> {
    let query = sql_query(call.sql()).bind::<Text, _>(call.arguments());
    let row: Answer = query.get_result(connection).await.map_err(|error| Failed::Library(error.to_string()))?;
    Ok(call.answer(&row.answer)?)
}
