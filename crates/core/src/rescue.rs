//! The end of a run whose worker lost its lease.

use std::time::Duration;

use crate::finish::Failure;
use crate::ident::WorkerId;
use crate::retry::failures_counted;
use crate::transition::Verb;

/// A run whose worker lost its lease.
#[derive(Clone, Copy, Debug)]
pub struct LostRun {
    /// The number of the attempt.
    pub attempt: u32,
    /// The maximum number of attempts of the job.
    pub max_attempts: u32,
    /// The kind of stop that an operator has requested, if any.
    pub stop: Option<Verb>,
    /// Whether it is a run of a bulk job that has completed a chunk since it was claimed.
    pub progressed: bool,
}

impl LostRun {
    /// Returns the number of consecutive failures, with this one, that determines the delay before the next attempt.
    #[must_use]
    pub const fn failures(self) -> u32 {
        failures_counted(self.attempt, self.progressed)
    }

    /// Returns how it ends: as an operator has requested, otherwise with a failure that counts as an attempt. `delay` is the delay before the
    /// next attempt.
    pub fn end(self, worker: WorkerId, delay: impl FnOnce() -> Duration) -> LostEnd {
        let (verb, delay) = match self.stop {
            Some(Verb::Abort) => (Verb::Abort, Duration::ZERO),
            Some(_) => (Verb::Cancel, Duration::ZERO),
            None if self.attempt >= self.max_attempts => (Verb::Fail, Duration::ZERO),
            None => (Verb::Retry, delay()),
        };
        LostEnd { verb, delay, failure: Failure::lease_lost(worker) }
    }
}

/// The end of a run whose worker lost its lease. The failure is recorded whatever the verb is: it says that the end was not reported by the
/// worker, whose later report is refused.
#[derive(Clone, Debug)]
pub struct LostEnd {
    /// Retry, fail, cancel or abort.
    pub verb: Verb,
    /// The delay before the next attempt, if it is retried.
    pub delay: Duration,
    /// The failure of the attempt.
    pub failure: Failure,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_run_ends_as_requested_or_is_retried_while_attempts_are_left() {
        let end = |attempt, stop| {
            let lost = LostRun { attempt, max_attempts: 3, stop, progressed: false };
            lost.end(WorkerId(7), || Duration::from_secs(5)).verb
        };
        assert_eq!((end(2, None), end(3, None)), (Verb::Retry, Verb::Fail));
        assert_eq!((end(2, Some(Verb::Abort)), end(3, Some(Verb::Cancel))), (Verb::Abort, Verb::Cancel));
        assert_eq!(Failure::lease_lost(WorkerId(7)).message, "worker 7 lost its lease");
    }
}
