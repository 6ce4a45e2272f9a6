//! Helpers for benchmarks that fill stores with dedicated statements.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

/// Splits a range of numbers into portions, one per transaction: first number, and last number (exclusive).
pub(super) fn portions(from: u64, to: u64, size: u64) -> impl Iterator<Item = (i64, i64)> {
    (from..to)
        .step_by(size as usize)
        .map(move |first| (first.cast_signed(), (first + size).min(to).cast_signed()))
}

/// Opens a file for filling: with a large cache and without durability.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let file = Connection::open(path)?;
    file.pragma_update(None, "synchronous", "off")?;
    file.pragma_update(None, "cache_size", -256 * 1024)?;
    Ok(file)
}

/// Writes everything that was filled to the disk.
pub(super) fn settle(file: &Connection) -> Result<()> {
    file.pragma_update(None, "synchronous", "full")?;
    file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
