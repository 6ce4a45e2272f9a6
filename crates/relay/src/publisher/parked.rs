//! Parked aggregates that a publisher knows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use milepost_core::event::Aggregate;
use tokio::sync::Notify;

/// Aggregates whose events are published only by retries.
///
/// An aggregate that is listed here but has no parked events is harmless: its next events are parked and due immediately. If a parked aggregate were
/// missing here, its events would be published out of order. Therefore aggregates are removed only after the store has reported that they have no
/// parked events.
#[derive(Debug, Default)]
pub(super) struct Parked {
    aggregates: Mutex<ParkedAggregates>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ParkedAggregates {
    /// Each aggregate with the logical time of its last addition.
    added_at: HashMap<Aggregate, u64>,
    /// Logical time: incremented by every addition.
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

    /// Returns the current logical time, for [`remove`](Self::remove).
    pub(super) fn now(&self) -> u64 {
        self.known().now
    }

    /// Removes aggregates that had no parked events when the store was queried after logical time `asked_at`. Aggregates that were added since then
    /// stay, because more of their events may have been parked.
    pub(super) fn remove(&self, drained: &[Aggregate], asked_at: u64) {
        let mut known = self.known();
        for aggregate in drained {
            if known.added_at.get(aggregate).is_some_and(|added_at| *added_at <= asked_at) {
                known.added_at.remove(aggregate);
            }
        }
    }

    /// Returns those of these aggregates that are parked.
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

    /// Waits until an aggregate is added.
    pub(super) async fn added(&self) {
        self.changed.notified().await;
    }

    fn known(&self) -> std::sync::MutexGuard<'_, ParkedAggregates> {
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
        // The next page parks more events of the aggregate after the store has reported that none were left.
        parked.add([order.clone()]);
        parked.remove(std::slice::from_ref(&order), asked_at);
        assert_eq!(parked.count(), 1);
        parked.remove(std::slice::from_ref(&order), parked.now());
        assert_eq!(parked.count(), 0);
    }
}
