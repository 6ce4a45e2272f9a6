//! The store's schema, as far as every store has the same words for it.

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}
