//! What benches have in common that fill stores by statements of their own.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

/// The stretches of numbers, of one transaction each: the first one, and the one after the last.
pub(super) fn portions(from: u64, to: u64, size: u64) -> impl Iterator<Item = (i64, i64)> {
    (from..to)
        .step_by(size as usize)
        .map(move |first| (first.cast_signed(), (first + size).min(to).cast_signed()))
}

/// A connection to a file that is being filled: with much memory, and with nothing kept from a power cut.
pub(super) fn open(path: &Path) -> Result<Connection> {
    let file = Connection::open(path)?;
    file.pragma_update(None, "synchronous", "off")?;
    file.pragma_update(None, "cache_size", -256 * 1024)?;
    Ok(file)
}

/// Brings all that was filled in to the disk.
pub(super) fn settle(file: &Connection) -> Result<()> {
    file.pragma_update(None, "synchronous", "full")?;
    file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
