//! A clock that was set back. Times that were computed while it was ahead must not delay anything until it reaches them again.

/// The difference from which a clock counts as set back, in milliseconds. Smaller ones are corrections of the clock.
pub const SET_BACK_MS_MIN: i64 = 5_000;
/// How often the time is noted, in milliseconds.
pub const NOTED_EVERY_MS: i64 = 10_000;

/// The name of the note of workers, which move back what jobs and retention wait for.
pub const OF_WORKERS: &str = "clock";
/// The name of the note of publishers, which move back their leases and what parked events wait for.
pub const OF_PUBLISHERS: &str = "publisher_clock";

/// What to do with the latest time that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Nothing: it was noted recently.
    Recently,
    /// Note the time.
    LongAgo,
    /// The clock was set back since, by this time in milliseconds.
    Ahead(i64),
}

impl Noted {
    /// Judges the noted time by its difference from now, in milliseconds; `None`: no time was noted yet.
    #[must_use]
    pub const fn of(ahead_ms: Option<i64>) -> Self {
        match ahead_ms {
            Some(ms) if ms > SET_BACK_MS_MIN => Self::Ahead(ms),
            Some(ms) if ms > -NOTED_EVERY_MS => Self::Recently,
            _ => Self::LongAgo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_as_set_back_when_a_noted_time_is_far_ahead() {
        assert_eq!(Noted::of(None), Noted::LongAgo);
        assert_eq!((Noted::of(Some(-10_000)), Noted::of(Some(-9_999))), (Noted::LongAgo, Noted::Recently));
        assert_eq!((Noted::of(Some(5_000)), Noted::of(Some(5_001))), (Noted::Recently, Noted::Ahead(5_001)));
    }
}
