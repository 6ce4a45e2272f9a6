//! Types for schema migrations that all stores share.

use crate::hash::fnv1a;

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// Returns a fingerprint of a migration's text.
#[must_use]
pub fn checksum(sql: &str) -> String {
    format!("{:016x}", fnv1a(sql))
}
