//! Rate limiting of checks whose cost grows with the store.

use std::time::Duration;

use tokio::time::Instant;

/// Checks use at most 1/20 of the time.
const PART: u32 = 20;

/// The earliest start of the next check, computed from the cost of the last one.
pub(crate) struct Pace {
    every: Duration,
    cost: Duration,
    look_at: Instant,
}

impl Pace {
    /// Creates a pace for checks that start at least this far apart.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, cost: Duration::ZERO, look_at: Instant::now() }
    }

    /// Returns the earliest start of the next check.
    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Records the start of a check, which may be canceled before it ends.
    pub(crate) fn begin(&mut self) -> Instant {
        let begun = Instant::now();
        self.plan(begun);
        begun
    }

    /// Records the end of the check that started at `begun`.
    pub(crate) fn end(&mut self, begun: Instant) {
        self.cost = begun.elapsed();
        self.plan(begun);
    }

    fn plan(&mut self, begun: Instant) {
        self.look_at = begun + self.every.max(self.cost * PART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dear_look_keeps_the_next_one_away_for_longer() {
        let every = Duration::from_secs(1);
        let mut pace = Pace::new(every);
        assert!(pace.look_at() <= Instant::now());
        let begun = pace.begin();
        assert_eq!(pace.look_at(), begun + every, "also if the check does not finish");
        let earlier = begun - Duration::from_secs(3);
        pace.end(earlier);
        assert!(pace.look_at() >= earlier + Duration::from_secs(60));
        assert!(pace.begin() + Duration::from_secs(60) <= pace.look_at(), "the next check may cost as much");
    }
}
