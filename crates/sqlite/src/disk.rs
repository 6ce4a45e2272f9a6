//! Free space on the file's disk.

use std::io;
use std::path::Path;

/// A disk with less free space than the first is always considered short, one with more than the second never.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;
const FREE_BYTES_ENOUGH: u64 = 1024 * 1024 * 1024;

/// Sizes of a file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes that this process can still use.
    pub(crate) free: u64,
    /// All bytes.
    pub(crate) total: u64,
}

impl Room {
    /// Returns whether a store on this disk will soon be unable to write.
    pub(crate) fn is_short(self) -> bool {
        self.free < self.least()
    }

    /// Returns the number of free bytes below which the disk is short.
    pub(crate) fn least(self) -> u64 {
        (self.total / 100).clamp(FREE_BYTES_MIN, FREE_BYTES_ENOUGH)
    }
}

/// Returns the sizes of the file system that contains this file.
#[cfg(unix)]
pub(crate) fn room(path: &Path) -> io::Result<Room> {
    let system = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
    Ok(Room { free: bytes(system.f_bavail), total: bytes(system.f_blocks) })
}

/// The free space is unknown and assumed to be sufficient.
#[cfg(not(unix))]
pub(crate) fn room(_path: &Path) -> io::Result<Room> {
    Ok(Room { free: u64::MAX, total: u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_short_when_little_is_left_or_a_small_part() {
        let mib = |free: u64, total: u64| Room { free: free << 20, total: total << 20 };
        assert!(mib(100, 1_000).is_short() && !mib(300, 1_000).is_short());
        assert!(mib(700, 80_000).is_short() && !mib(900, 80_000).is_short());
        assert!(mib(1_000, 1_000_000).is_short() && !mib(1_100, 1_000_000).is_short());
    }

    #[test]
    fn the_disk_of_the_tests_has_some_room() {
        let room = room(&std::env::temp_dir()).unwrap();
        assert!(0 < room.free && room.free <= room.total, "{room:?}");
    }
}
