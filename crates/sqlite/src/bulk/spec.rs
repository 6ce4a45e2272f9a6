//! What a bulk job does: its targets, and the effect on them.

use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::effect;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Dialect, Source};

use super::handler::ChunkHandler;
use super::sql::Statements;

/// The effect on the targets of a chunk.
pub type Effect = effect::Effect<dyn ChunkHandler>;
/// A parsed effect.
pub(super) type Applied = effect::Applied<dyn ChunkHandler>;

/// The parts that are the same for all runs.
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) source: Source,
    pub(super) applied: Applied,
    pub(super) statements: Statements,
}

impl Spec {
    /// Parses a source with its key columns.
    pub(super) fn read(
        definition: &Definition,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
        let source = Source::parse(source, key, Dialect::Sqlite).map_err(InvalidBulk::Source)?;
        let statements = Statements::write(&source, applied.statement());
        let (name, fingerprint) = (definition.name.clone(), definition.fingerprint.clone());
        Ok(Self { name, fingerprint, source, applied, statements })
    }
}
