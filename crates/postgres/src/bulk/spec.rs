//! What a bulk job does: its targets, their database, and the effect on them.

use std::fmt;
use std::sync::Arc;

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Apply, Dialect, Source};

use super::database::Database;
use super::handler::ChunkHandler;
use super::sql::Failures;

/// The effect on the targets of a chunk.
#[derive(Clone)]
pub enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A chunk handler, which runs in the chunk's transaction.
    Handler(Arc<dyn ChunkHandler>),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(sql) => f.debug_tuple("Sql").field(sql).finish(),
            Self::Handler(_) => f.write_str("Handler"),
        }
    }
}

/// A parsed effect.
#[derive(Clone)]
pub(super) enum Applied {
    Sql(Apply),
    Handler(Arc<dyn ChunkHandler>),
    /// No effect in this database: the targets are only read.
    Elsewhere,
}

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

impl Applied {
    /// Parses an effect on targets with these key columns.
    pub(super) fn read(effect: Effect, key: &[String]) -> Result<Self, InvalidBulk> {
        Ok(match effect {
            Effect::Sql(sql) => {
                Self::Sql(Apply::parse(&sql, key, Dialect::Postgres).map_err(InvalidBulk::Apply)?)
            }
            Effect::Handler(handler) => Self::Handler(handler),
        })
    }
}
