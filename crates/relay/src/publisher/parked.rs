//! Which aggregates are parked, as a publisher knows it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use milepost_core::event::Aggregate;
use tokio::sync::Notify;

/// Aggregates of which no event goes out but by way of retries.
///
/// One that is here and has nothing parked any more is harmless: its next events are parked and due at once. One that is missing here
/// would be published out of order, so aggregates leave only after the store has said that none of their events is left.
#[derive(Debug, Default)]
pub(super) struct Parked {
    aggregates: Mutex<HashSet<Aggregate>>,
    changed: Notify,
}

impl Parked {
    pub(super) fn add(&self, aggregates: impl IntoIterator<Item = Aggregate>) {
        let mut all = self.all();
        let before = all.len();
        all.extend(aggregates);
        if all.len() > before {
            self.changed.notify_one();
        }
    }

    pub(super) fn remove(&self, drained: &[Aggregate]) {
        let mut all = self.all();
        for aggregate in drained {
            all.remove(aggregate);
        }
    }

    /// Those of these that are parked.
    pub(super) fn of<'a>(&self, aggregates: impl Iterator<Item = &'a Aggregate>) -> Vec<Aggregate> {
        let all = self.all();
        if all.is_empty() { Vec::new() } else { aggregates.filter(|a| all.contains(a)).cloned().collect() }
    }

    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    /// Waits until one is added.
    pub(super) async fn added(&self) {
        self.changed.notified().await;
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashSet<Aggregate>> {
        self.aggregates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
