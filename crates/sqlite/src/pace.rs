//! How often something may be looked at whose cost grows with the store.

use std::time::Duration;

use tokio::time::Instant;

/// Looks take at most one part in so many of the time.
const PART: u32 = 20;

/// When the next look may begin, by what the last one cost.
pub(crate) struct Pace {
    every: Duration,
    cost: Duration,
    look_at: Instant,
}

impl Pace {
    /// Looks that begin this far apart at least.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, cost: Duration::ZERO, look_at: Instant::now() }
    }

    /// No look may begin before this.
    pub(crate) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// Notes that a look begins, which may never end.
    pub(crate) fn begin(&mut self) -> Instant {
        let begun = Instant::now();
        self.plan(begun);
        begun
    }

    /// Notes that a look has ended that began then.
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
        assert_eq!(pace.look_at(), begun + every, "also when the look is given up");
        let earlier = begun - Duration::from_secs(3);
        pace.end(earlier);
        assert!(pace.look_at() >= earlier + Duration::from_secs(60));
        assert!(pace.begin() + Duration::from_secs(60) <= pace.look_at(), "the next one may cost as much");
    }
}
