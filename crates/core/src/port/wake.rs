//! Hints that looking now is worth it.

use async_trait::async_trait;

/// Why to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something may have become ready.
    Ready,
    /// Somebody may have asked a running job to stop.
    Stop,
    /// Batches may have something left to be worked out.
    Batch,
}

/// Hints from the store. A hint may come for nothing; a missing one costs at most the poll interval.
#[async_trait]
pub trait WakeStream: Send {
    /// Waits for the next hint. One that came since the last call is returned at once, so a caller that
    /// looks, finds nothing and then waits misses nothing.
    async fn next(&mut self) -> Wake;
}
