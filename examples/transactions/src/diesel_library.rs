//! diesel. Its errors have no SQLSTATE: the message names the fault.

use diesel::sql_types::Text;
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _, sql_query};
use milepost::sql::Call;

use crate::Failed;

/// The row of a call.
#[derive(QueryableByName)]
pub(crate) struct Answer {
    /// The result, as JSON text.
    #[diesel(sql_type = Text)]
    pub(crate) answer: String,
}

/// Runs a call in the transaction of this connection.
///
/// # Errors
/// [`Failed`] with the reason.
pub fn run<T>(connection: &mut PgConnection, call: &Call<T>) -> Result<T, Failed> {
    let query = sql_query(call.sql()).bind::<Text, _>(call.arguments());
    let row: Answer = query.get_result(connection).map_err(|error| Failed::Library(error.to_string()))?;
    Ok(call.answer(&row.answer)?)
}
