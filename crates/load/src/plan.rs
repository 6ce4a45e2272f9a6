//! The jobs of a run, and how each must end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The maximum number of attempts of a job that is to use them all.
const ATTEMPTS_OF_EXHAUSTED: u32 = 2;
/// The maximum number of attempts of all others.
const ATTEMPTS_MAX: u32 = 25;

/// What the handler does with a job. It is the job's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of attempts that fail and may be repeated.
    pub failures: u32,
    /// Whether the attempt after these fails without another attempt.
    pub refused: bool,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// How long each attempt takes, in milliseconds.
    pub hold_ms: u64,
}

/// How a job must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its state.
    pub state: &'static str,
    /// The number of its attempts, without those that were lost with a worker.
    pub attempts: u32,
}

impl Plan {
    /// Returns a job that succeeds after this number of failures.
    #[must_use]
    pub fn succeeding(failures: u32, hold: Duration) -> Self {
        let hold_ms = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
        Self { failures, refused: false, max_attempts: ATTEMPTS_MAX, hold_ms }
    }

    /// Returns the job with this number of a mix: of ten jobs, five succeed, two succeed after a failure and one after two, one fails without
    /// another attempt, and one uses up its attempts.
    #[must_use]
    pub fn mixed(number: u64, hold: Duration) -> Self {
        let plan = |failures| Self::succeeding(failures, hold);
        match number % 10 {
            0 => Self { refused: true, ..plan(0) },
            1 => Self { max_attempts: ATTEMPTS_OF_EXHAUSTED, ..plan(ATTEMPTS_OF_EXHAUSTED) },
            2 | 3 => plan(1),
            4 => plan(2),
            _ => plan(0),
        }
    }

    /// Returns how the job must end.
    #[must_use]
    pub fn expected(&self) -> Expected {
        if self.failures >= self.max_attempts {
            return Expected { state: "failed", attempts: self.max_attempts };
        }
        let state = if self.refused { "failed" } else { "succeeded" };
        Expected { state, attempts: self.failures + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_of_a_mix_has_one_end() {
        let ends: Vec<_> = (0..6).map(|number| Plan::mixed(number, Duration::ZERO).expected()).collect();
        let expected = [
            ("failed", 1),
            ("failed", 2),
            ("succeeded", 2),
            ("succeeded", 2),
            ("succeeded", 3),
            ("succeeded", 1),
        ];
        assert_eq!(ends, expected.map(|(state, attempts)| Expected { state, attempts }));
    }
}
