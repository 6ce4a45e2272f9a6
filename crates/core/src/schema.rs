//! The version of a store's schema.

/// What a migration did: the schema versions before and after. Equal when there was nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version found; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}
