//! Queues of work by aggregate: one piece of work of each aggregate runs at a time.

use std::collections::{HashMap, VecDeque};

use milepost_core::event::Aggregate;

/// The pieces of work that wait for the running one of their aggregate.
#[derive(Debug)]
pub(super) struct Lanes<W>(HashMap<Aggregate, VecDeque<W>>);

impl<W> Lanes<W> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Adds a piece of work. Returns it if it can start immediately.
    pub(super) fn enter(&mut self, aggregate: &Aggregate, work: W) -> Option<W> {
        if let Some(waiting) = self.0.get_mut(aggregate) {
            waiting.push_back(work);
            return None;
        }
        self.0.insert(aggregate.clone(), VecDeque::new());
        Some(work)
    }

    /// Records that a piece of work has finished. Returns the next one of its aggregate.
    pub(super) fn leave(&mut self, aggregate: &Aggregate) -> Option<W> {
        let next = self.0.get_mut(aggregate).and_then(VecDeque::pop_front);
        if next.is_none() {
            self.0.remove(aggregate);
        }
        next
    }

    /// Removes and returns all work that has not started.
    pub(super) fn give_back(&mut self) -> Vec<W> {
        self.0.values_mut().flat_map(|waiting| waiting.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_one_piece_at_a_time_in_order() {
        let (a, b) = (Aggregate::new("order", "a"), Aggregate::new("order", "b"));
        let mut lanes = Lanes::new();
        assert_eq!(lanes.enter(&a, 1), Some(1));
        assert_eq!((lanes.enter(&a, 2), lanes.enter(&a, 3)), (None, None));
        assert_eq!(lanes.enter(&b, 4), Some(4), "another aggregate does not wait");
        assert_eq!((lanes.leave(&a), lanes.leave(&a), lanes.leave(&a)), (Some(2), Some(3), None));
        assert_eq!(lanes.enter(&a, 5), Some(5));
        lanes.enter(&b, 6);
        assert_eq!(lanes.give_back(), [6]);
        assert_eq!(lanes.leave(&b), None);
    }
}
