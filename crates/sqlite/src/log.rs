//! The write-ahead log: how long it has grown, and emptying it into the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use crate::failure::is_busy;
use crate::file::Patience;

/// Frames that the log grows by before it is emptied into the file: 32 MiB.
const FRAMES: u32 = 8000;
/// Frames from which on everybody is made to wait until the log can begin anew: 256 MiB.
const FRAMES_MAX: u32 = 8 * FRAMES;
/// How long that waits for those who read. Nobody can write meanwhile, so it stays well below the 50 ms of a write
/// transaction; in vain, it is tried again when the log has grown further.
const PATIENCE: Duration = Duration::from_millis(20);

/// What is known of the log of one connection.
pub(crate) struct Log {
    /// Frames after the last commit.
    frames: Arc<AtomicU32>,
    /// Frames when it was last emptied; 0 since it began anew.
    emptied_frames: u32,
}

impl Log {
    /// Follows what the connection commits, in place of SQLite's own checkpoint inside the commit: callers get
    /// their answers first.
    pub(crate) fn follow(conn: &mut Connection) -> rusqlite::Result<Self> {
        let frames = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&frames);
        conn.wal_hook(Some(move |_log: &mut rusqlite::hooks::Wal, pages: i32| {
            seen.store(pages.max(0).cast_unsigned(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { frames, emptied_frames: 0 })
    }

    /// Moves the log into the file once it has grown; answers whether it did. Other processes may write meanwhile,
    /// and so keep it from beginning anew, until it is very long.
    pub(crate) fn empty(&mut self, conn: &Connection, patience: &Patience) -> rusqlite::Result<bool> {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames < self.emptied_frames {
            self.emptied_frames = 0;
        }
        if frames - self.emptied_frames < FRAMES {
            return Ok(false);
        }
        self.emptied_frames = frames;
        // The long part, beside which others write.
        conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE)?;
        if frames >= FRAMES_MAX {
            begin_anew(conn, patience)?;
        }
        Ok(true)
    }
}

/// Keeps everybody from writing until nobody reads from the log any more, or for as long as the patience lasts.
fn begin_anew(conn: &Connection, patience: &Patience) -> rusqlite::Result<()> {
    patience.extend(Instant::now() + PATIENCE);
    match conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::RESTART) {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
        // The machine may stall, so the quickest of several counts.
        let quickest = (0..5).map(|_| {
            let begun = Instant::now();
            begin_anew(&writer, &patience).unwrap();
            begun.elapsed()
        });
        let quickest = quickest.min().unwrap();
        assert!(quickest >= PATIENCE, "it waited for the reader: {quickest:?}");
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");
    }
}
