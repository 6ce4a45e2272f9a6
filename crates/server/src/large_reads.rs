//! Permits to have many megabytes in memory for a request: lists with large rows, and definitions of DAGs.

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::client::Caller;
use crate::limits::turns::Turns;

/// How many requests read something large at the same time.
const READS_MAX: u32 = 4;
/// How many of them are of one caller. The other requests of the caller wait behind these, so that they delay nobody else.
const OF_CALLER_MAX: usize = 2;

tokio::task_local! {
    /// The caller of the request that this task handles.
    pub(crate) static CALLER: Caller;
}

/// The permits that requests hold while something large is in memory.
pub(crate) struct LargeReads {
    reads: Semaphore,
    definitions: Semaphore,
    turns: Turns,
}

/// A permit. Functions that read or build something large take a reference to one.
pub(crate) struct LargePermit<'s> {
    _read: Option<SemaphorePermit<'s>>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl LargeReads {
    pub(crate) fn new() -> Self {
        Self {
            reads: Semaphore::new(READS_MAX as usize),
            definitions: Semaphore::new(1),
            turns: Turns::new(OF_CALLER_MAX),
        }
    }

    /// Waits for the permit to read something large.
    pub(crate) async fn permit(&self) -> LargePermit<'_> {
        let turn = self.turn().await;
        LargePermit { _read: self.reads.acquire().await.ok(), _turn: turn }
    }

    /// Waits until nothing else that is large is read. A response with a whole definition needs the most memory.
    pub(crate) async fn exclusive_permit(&self) -> LargePermit<'_> {
        let turn = self.turn().await;
        LargePermit { _read: self.reads.acquire_many(READS_MAX).await.ok(), _turn: turn }
    }

    /// Waits until the caller of this task has fewer than [`OF_CALLER_MAX`] requests that hold or await a permit.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let caller = CALLER.try_with(Clone::clone).ok()?;
        self.turns.turn(caller).await
    }

    /// Waits for the permit to store a definition: one at a time. It does not delay reads, since the store may wait for a lock.
    pub(crate) async fn definition_permit(&self) -> LargePermit<'_> {
        LargePermit { _read: self.definitions.acquire().await.ok(), _turn: None }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_request_waits_while_four_others_read_something_large() {
        let large = LargeReads::new();
        let mut held = Vec::new();
        for _ in 0..READS_MAX {
            held.push(large.permit().await);
        }
        let mut fifth = Box::pin(large.permit());
        assert!((&mut fifth).now_or_never().is_none());
        held.pop();
        assert!((&mut fifth).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_definition_that_is_being_stored_delays_other_definitions_but_no_reads() {
        let large = LargeReads::new();
        let _storing = large.definition_permit().await;
        assert!(large.definition_permit().now_or_never().is_none());
        assert!(large.exclusive_permit().now_or_never().is_some());
    }
}
