//! Hints that a query of the store is worthwhile.

use async_trait::async_trait;

/// The reason of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A job may have become ready.
    Ready,
    /// A stop of a running job may have been requested.
    Stop,
    /// Batches may have tasks to evaluate.
    Batch,
}

/// Hints from the store. A hint may be spurious; a missing one costs at most the poll interval.
#[async_trait]
pub trait WakeStream: Send {
    /// Waits for the next hint. A hint that arrived since the last call is returned immediately, so a caller that
    /// queries the store, finds nothing and then waits does not miss anything.
    async fn next(&mut self) -> Wake;
}
