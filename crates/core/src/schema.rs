//! Types for schema migrations that all stores share.

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// Returns a fingerprint of a migration's text: FNV-1a with 64 bits, which detects accidental edits, not attacks.
#[must_use]
pub fn checksum(sql: &str) -> String {
    let hash = sql.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
