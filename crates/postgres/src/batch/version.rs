//! Check of the version that a rerun uses.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;

use super::start::check_input;
use crate::row::Decoded;
use crate::session::Session;

/// Checks that the version of a rerun exists and that the batch's input matches its schema. Neither can change afterwards.
pub(super) async fn fit(tx: &mut Session<'_>, operation: &BatchOperation) -> Decoded<StoreResult<()>> {
    let BatchVerb::RerunIn { version, .. } = &operation.what else { return Ok(Ok(())) };
    let query = sqlx::query(sql!("batch/input_in")).bind(operation.batch.0).bind(version.to_string());
    let Some(row) = tx.row(query).await? else {
        return Ok(Err(InvalidBatch::NoSuchBatch(operation.batch).into()));
    };
    if !row.try_get::<bool, _>("has_version")? {
        let name = row.try_get("dag")?;
        return Ok(Err(InvalidBatch::NoSuchVersion { name, version: version.to_string() }.into()));
    }
    let input = row.try_get::<Option<String>, _>("input")?.unwrap_or_else(|| "null".to_owned());
    check_input(row.try_get("input_schema")?, input).await
}
