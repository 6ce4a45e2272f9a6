//! Which aggregates are parked, as a publisher knows it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use milepost_core::event::Aggregate;
use tokio::sync::Notify;

/// Aggregates of which no event goes out but by way of retries.
///
/// One that is here and has nothing parked any more is harmless: its next events are parked and due at once. One that is missing here
/// would be published out of order, so aggregates leave only after the store has said that none of their events is left.
#[derive(Debug, Default)]
pub(super) struct Parked {
    aggregates: Mutex<Known>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// Each with the moment at which it was added last.
    added_at: HashMap<Aggregate, u64>,
    /// Counts on with every addition.
    now: u64,
}

impl Parked {
    pub(super) fn add(&self, aggregates: impl IntoIterator<Item = Aggregate>) {
        let mut known = self.known();
        let before = known.added_at.len();
        known.now += 1;
        let now = known.now;
        known.added_at.extend(aggregates.into_iter().map(|aggregate| (aggregate, now)));
        if known.added_at.len() > before {
            self.changed.notify_one();
        }
    }

    /// The moment that it is, for [`remove`](Self::remove).
    pub(super) fn now(&self) -> u64 {
        self.known().now
    }

    /// None of these had an event left when the store was asked after `asked_at`: they leave, but for those that were added since, of
    /// which more may have been parked.
    pub(super) fn remove(&self, drained: &[Aggregate], asked_at: u64) {
        let mut known = self.known();
        for aggregate in drained {
            if known.added_at.get(aggregate).is_some_and(|added_at| *added_at <= asked_at) {
                known.added_at.remove(aggregate);
            }
        }
    }

    /// Those of these that are parked.
    pub(super) fn of<'a>(&self, aggregates: impl Iterator<Item = &'a Aggregate>) -> Vec<Aggregate> {
        let known = self.known();
        if known.added_at.is_empty() {
            return Vec::new();
        }
        aggregates.filter(|aggregate| known.added_at.contains_key(aggregate)).cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.known().added_at.len()
    }

    /// Waits until one is added.
    pub(super) async fn added(&self) {
        self.changed.notified().await;
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.aggregates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_parked_again_while_it_is_drained_stays() {
        let (parked, order) = (Parked::default(), Aggregate::new("order", "1"));
        parked.add([order.clone()]);
        let asked_at = parked.now();
        // The page that follows parks more of it, after the store has said that nothing was left.
        parked.add([order.clone()]);
        parked.remove(std::slice::from_ref(&order), asked_at);
        assert_eq!(parked.count(), 1);
        parked.remove(std::slice::from_ref(&order), parked.now());
        assert_eq!(parked.count(), 0);
    }
}
