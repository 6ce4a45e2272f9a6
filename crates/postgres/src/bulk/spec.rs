//! What a bulk job does: its targets, their database, and the effect on them.

use milepost_core::bulk::effect;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Dialect, Source};

use super::database::Database;
use super::handler::ChunkHandler;
use super::sql::Failures;

/// The effect on the targets of a chunk.
pub type Effect = effect::Effect<dyn ChunkHandler>;
/// A parsed effect.
pub(super) type Applied = effect::Applied<dyn ChunkHandler>;

/// The targets of a bulk job, their database, and the effect on them.
#[derive(Clone)]
pub(super) struct Spec {
    pub(super) database: Database,
    pub(super) source: Source,
    pub(super) applied: Applied,
    pub(super) failures: Failures,
    /// Columns that the source must select in addition to its key.
    pub(super) columns: Vec<String>,
}

impl Spec {
    /// Parses a source with its key columns.
    pub(super) fn read(
        database: Database,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
        let source = Source::parse(source, key, Dialect::Postgres).map_err(InvalidBulk::Source)?;
        let failures = if database.is_own() { Failures::Stored } else { Failures::Given };
        let columns = match &applied {
            Applied::Handler(handler) => handler.columns().into_iter().map(str::to_owned).collect(),
            Applied::Sql(_) | Applied::Elsewhere => Vec::new(),
        };
        Ok(Self { database, source, applied, failures, columns })
    }
}
