//! Permits to have many megabytes in memory for a request: lists with large rows, and definitions of DAGs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::client::Caller;

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
    /// The permits of callers who hold or await some.
    callers: Mutex<HashMap<Caller, Arc<Semaphore>>>,
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
            callers: Mutex::default(),
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
        let own = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            callers.retain(|_, own| Arc::strong_count(own) > 1);
            callers.entry(caller).or_insert_with(|| Arc::new(Semaphore::new(OF_CALLER_MAX))).clone()
        };
        own.acquire_owned().await.ok()
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
    async fn a_caller_with_many_requests_delays_no_other_caller() {
        let large = LargeReads::new();
        let permit = |name: &str| CALLER.scope(Caller::Known(name.into()), large.permit());
        let mut greedy = Vec::new();
        for _ in 0..OF_CALLER_MAX {
            greedy.push(permit("greedy").await);
        }
        let mut third = Box::pin(permit("greedy"));
        assert!((&mut third).now_or_never().is_none());
        assert!(permit("other").now_or_never().is_some());
        greedy.pop();
        assert!((&mut third).now_or_never().is_some());
        drop((greedy, third));
        drop(permit("other").await);
        assert_eq!(large.callers.lock().unwrap().len(), 1, "callers without requests are forgotten");
    }

    #[tokio::test]
    async fn a_definition_that_is_being_stored_delays_other_definitions_but_no_reads() {
        let large = LargeReads::new();
        let _storing = large.definition_permit().await;
        assert!(large.definition_permit().now_or_never().is_none());
        assert!(large.exclusive_permit().now_or_never().is_some());
    }
}
