//! Types for schema migrations that all stores share.

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}
