//! Turns: how many requests of one caller do something at the same time. Its other requests wait, so that they delay nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::Caller;

/// The turns of all callers.
pub(crate) struct Turns {
    of_caller_max: usize,
    /// The permits of callers who hold or await some.
    callers: Mutex<HashMap<Caller, Arc<Semaphore>>>,
}

impl Turns {
    pub(crate) fn new(of_caller_max: usize) -> Self {
        Self { of_caller_max, callers: Mutex::default() }
    }

    /// Waits until the caller has a turn, which lasts until the permit is dropped.
    pub(crate) async fn turn(&self, caller: Caller) -> Option<OwnedSemaphorePermit> {
        let own = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            callers.retain(|_, own| Arc::strong_count(own) > 1);
            callers.entry(caller).or_insert_with(|| Arc::new(Semaphore::new(self.of_caller_max))).clone()
        };
        own.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_caller_with_many_requests_delays_no_other_caller() {
        let turns = Turns::new(2);
        let turn = |name: &str| turns.turn(Caller::Known(name.into()));
        let mut greedy = vec![turn("greedy").await, turn("greedy").await];
        let mut third = Box::pin(turn("greedy"));
        assert!((&mut third).now_or_never().is_none());
        assert!(turn("other").now_or_never().is_some());
        greedy.pop();
        assert!((&mut third).now_or_never().is_some());
        drop((greedy, third));
        drop(turn("other").await);
        assert_eq!(turns.callers.lock().unwrap().len(), 1, "callers without requests are forgotten");
    }
}
