//! A clock that is wrong for a while. Times that were computed while it was ahead must not delay anything until it reaches them again, and nothing
//! may be deleted because of them.

/// The difference from which a clock counts as set back, in milliseconds. Smaller ones are corrections of the clock.
pub const SET_BACK_MS_MIN: i64 = 5_000;
/// How often the time is noted, in milliseconds.
pub const NOTED_EVERY_MS: i64 = 10_000;

/// The difference from which a clock can have been put forward, in milliseconds: a day. Or nothing noted the time for so long.
pub const JUMP_MS_MIN: i64 = 86_400_000;
/// How long retention deletes nothing after that, in milliseconds, so that a wrong clock can be set right: ten minutes.
pub const DELETION_WAIT_MS: i64 = 600_000;

/// The name of the note of workers, which move back what jobs and retention wait for.
pub const OF_WORKERS: &str = "clock";
/// The name of the note of publishers, which move back their leases and what parked events wait for.
pub const OF_PUBLISHERS: &str = "publisher_clock";
/// The name of the time until which retention deletes nothing.
pub const OF_DELETION: &str = "deletion";

/// What to do with the latest time that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Nothing: it was noted recently.
    Recently,
    /// Note the time.
    LongAgo,
    /// Note the time, and let retention wait: the clock was put forward, by this time in milliseconds, or nothing ran for so long.
    Jumped(i64),
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
            Some(ms) if ms <= -JUMP_MS_MIN => Self::Jumped(-ms),
            _ => Self::LongAgo,
        }
    }
}

/// Decides whether retention may delete by the clock. `noted_ms`: by how many milliseconds the latest noted time differs from now; none if none
/// was noted. `waits`: whether it has to wait after a jump.
#[must_use]
pub const fn may_delete(noted_ms: Option<i64>, waits: bool) -> bool {
    // A jump that is not noted yet, or a clock that was set back.
    !waits && !matches!(Noted::of(noted_ms), Noted::Jumped(_) | Noted::Ahead(_))
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

    #[test]
    fn nothing_is_deleted_after_a_jump_of_the_clock() {
        assert_eq!(Noted::of(Some(-86_399_999)), Noted::LongAgo);
        assert_eq!(Noted::of(Some(-86_400_000)), Noted::Jumped(86_400_000));
        assert!(
            may_delete(None, false) && may_delete(Some(0), false) && may_delete(Some(-86_399_999), false)
        );
        assert!(
            !may_delete(Some(-86_400_000), false)
                && !may_delete(Some(6_000), false)
                && !may_delete(Some(0), true)
        );
    }
}
