//! Limits on concurrency for each of many keys.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number in flight for each key.
pub(crate) struct InFlight<K: Hash + Eq> {
    max: usize,
    of: Mutex<HashMap<K, usize>>,
}

/// One in flight, until it is dropped.
pub(crate) struct Permit<K: Hash + Eq> {
    all: Arc<InFlight<K>>,
    of: K,
}

impl<K: Hash + Eq + Clone> InFlight<K> {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, of: Mutex::default() })
    }

    /// Registers one more, or returns `None` if the maximum is reached.
    pub(crate) fn enter(self: &Arc<Self>, of: K) -> Option<Permit<K>> {
        let mut all = self.lock();
        let count = all.entry(of.clone()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Permit { all: Arc::clone(self), of })
    }
}

impl<K: Hash + Eq> InFlight<K> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_places_of_its_own_and_gives_them_back() {
        let all = InFlight::new(2);
        let (one, two) = (all.enter("a"), all.enter("a"));
        assert!(one.is_some() && two.is_some() && all.enter("a").is_none());
        assert!(all.enter("b").is_some());
        drop(one);
        assert!(all.enter("a").is_some());
        drop(two);
        assert!(all.lock().is_empty(), "clients without requests take no memory");
    }
}
