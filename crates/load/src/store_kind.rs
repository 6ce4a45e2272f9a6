//! The kinds of stores.

use clap::ValueEnum;

/// The store under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreKind {
    /// A SQLite file
    Sqlite,
    /// A PostgreSQL database on the server of scripts/services
    Postgres,
}

impl StoreKind {
    /// Returns its name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}
