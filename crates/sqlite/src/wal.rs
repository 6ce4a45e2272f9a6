//! The write-ahead log: its length, and checkpoints into the file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use crate::disk::{self, Room};
use crate::error::is_busy;
use crate::lock_wait::Patience;

/// The size of a frame: a page of 4 KiB and its header.
const FRAME_BYTES: u64 = 4096 + 24;
/// The number of new frames after which the log is checkpointed into the file, on a disk with enough space: 32 MiB.
const FRAMES: u32 = 8000;
/// The same on a disk that is nearly full: 256 KiB.
const FRAMES_MIN: u32 = 64;
/// The longest log that Milepost allows on a disk with enough space, in bytes. Only long-running readers make it longer.
pub(crate) const LOG_BYTES_MAX: u64 = 2 * FRAMES as u64 * FRAME_BYTES;
/// The first wait for readers of the log before it restarts. No process can write during the wait, so it is well below the 50 ms of a write
/// transaction. It doubles with each attempt, until the log has restarted.
const PATIENCE: Duration = Duration::from_millis(20);
/// The longest wait for readers.
const PATIENCE_MAX: Duration = Duration::from_millis(640);

/// The state of the log of one connection.
pub(crate) struct Log {
    /// Frames after the last commit.
    frames: Arc<AtomicU32>,
    /// Frames at the last check; 0 after the log restarted.
    seen_frames: u32,
    /// Frames at the last checkpoint; 0 after the log restarted.
    emptied_frames: u32,
    /// The frames that the log may grow before a checkpoint.
    growth: u32,
    patience: Duration,
}

impl Log {
    /// Tracks what the connection commits. Replaces SQLite's checkpoint inside the commit, so that callers get their answers before the
    /// checkpoint.
    pub(crate) fn follow(conn: &mut Connection) -> rusqlite::Result<Self> {
        let frames = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&frames);
        conn.wal_hook(Some(move |_log: &mut rusqlite::hooks::Wal, pages: i32| {
            seen.store(pages.max(0).cast_unsigned(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { frames, seen_frames: 0, emptied_frames: 0, growth: FRAMES, patience: PATIENCE })
    }

    /// Returns whether the log has grown so much since its last checkpoint that [`Log::empty`] is to be called.
    pub(crate) fn is_long(&mut self, conn: &Connection) -> bool {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames < self.seen_frames {
            (self.seen_frames, self.emptied_frames, self.patience) = (0, 0, PATIENCE);
        }
        if frames - self.seen_frames < FRAMES_MIN {
            return false;
        }
        self.seen_frames = frames;
        self.growth = growth_max(disk::room(Path::new(conn.path().unwrap_or_default())).ok());
        frames - self.emptied_frames >= self.growth
    }

    /// Checkpoints the log into the file. Other processes can write during the checkpoint and thus prevent the log from restarting, until it
    /// has twice the length of [`Log::is_long`].
    pub(crate) fn empty(&mut self, conn: &Connection, patience: &Patience) -> rusqlite::Result<()> {
        let frames = self.seen_frames;
        self.emptied_frames = frames;
        // The long part; other processes can write during it.
        conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE)?;
        if frames >= 2 * self.growth {
            begin_anew(conn, patience, self.patience, CheckpointMode::RESTART)?;
            self.patience = (2 * self.patience).min(PATIENCE_MAX);
        }
        Ok(())
    }

    /// Truncates the log, as far as the file has space for its pages. Without this, a full disk would stay full, because checkpoints
    /// otherwise happen only after commits.
    pub(crate) fn give_back(&self, conn: &Connection, patience: &Patience) -> rusqlite::Result<()> {
        conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE)?;
        begin_anew(conn, patience, self.patience, CheckpointMode::TRUNCATE)
    }
}

/// Returns the number of frames that the log may grow before a checkpoint: a 16th of the free space, so that the log of all processes,
/// which is at most twice as long, leaves space for the pages that it writes to the file.
fn growth_max(room: Option<Room>) -> u32 {
    let frames = room.map_or(u64::from(FRAMES), |room| room.free / 16 / FRAME_BYTES);
    u32::try_from(frames).unwrap_or(u32::MAX).clamp(FRAMES_MIN, FRAMES)
}

/// Blocks all writers until no reader uses the log, at most for `most`, and restarts the log.
fn begin_anew(
    conn: &Connection,
    patience: &Patience,
    most: Duration,
    mode: CheckpointMode,
) -> rusqlite::Result<()> {
    patience.extend(Instant::now() + most);
    match conn.wal_checkpoint_v2(Some(MAIN_DB), mode) {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic fails the test")]

    use super::*;
    use crate::file;

    #[test]
    fn a_log_that_somebody_reads_keeps_others_from_writing_for_less_than_a_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        file::turn_to_wal(&path, Duration::from_secs(5)).unwrap();
        let (writer, patience) = file::open_writer(&path, Duration::from_secs(5)).unwrap();
        writer.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1)").unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT n FROM t").unwrap();
        writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        // The machine may stall, so the fastest of several attempts counts.
        let quickest = (0..5).map(|_| {
            let begun = Instant::now();
            begin_anew(&writer, &patience, PATIENCE, CheckpointMode::RESTART).unwrap();
            begun.elapsed()
        });
        let quickest = quickest.min().unwrap();
        assert!(quickest >= PATIENCE, "it waited for the reader: {quickest:?}");
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");
    }

    #[test]
    fn the_log_grows_less_where_little_is_free() {
        let free = |mib: u64| growth_max(Some(Room { free: mib << 20, total: 1 << 40 }));
        assert_eq!(growth_max(None), FRAMES);
        assert_eq!(free(100_000), FRAMES);
        assert!((900..1100).contains(&free(64)), "4 MiB: {}", free(64));
        assert_eq!(free(0), FRAMES_MIN);
    }

    #[test]
    fn the_log_of_a_file_that_others_write_and_read_stays_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        file::turn_to_wal(&path, Duration::from_secs(5)).unwrap();
        let (mut writer, patience) = file::open_writer(&path, Duration::from_secs(5)).unwrap();
        let (other, _) = file::open_writer(&path, Duration::from_secs(5)).unwrap();
        let mut log = Log::follow(&mut writer).unwrap();
        writer.execute_batch("CREATE TABLE t (n, filler)").unwrap();
        let reader = Connection::open(&path).unwrap();
        for _ in 0..400 {
            // The reader always reads the last commit, and the other writer has written since.
            reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
            other.execute_batch("DELETE FROM t; INSERT INTO t VALUES (1, zeroblob(400000))").unwrap();
            writer.execute_batch("DELETE FROM t; INSERT INTO t VALUES (2, zeroblob(400000))").unwrap();
            reader.execute_batch("COMMIT").unwrap();
            if log.is_long(&writer) {
                log.empty(&writer, &patience).unwrap();
            }
        }
        let bytes = std::fs::metadata(folder.path().join("jobs.db-wal")).unwrap().len();
        assert!(bytes <= LOG_BYTES_MAX + (8 << 20), "{bytes}");
    }
}
