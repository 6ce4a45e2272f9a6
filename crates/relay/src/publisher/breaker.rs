//! Circuit breaker: stops publishing for a while when the sink accepts nothing, without counting failures of single events.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::retry::RetryPolicy;

use crate::sink::Delivery;

/// After this number of consecutive failures the sink is considered unavailable.
pub(super) const FAILURES_MAX: usize = 5;
/// First and longest time for which the breaker stays open.
const WAIT: RetryPolicy =
    RetryPolicy { base: Duration::from_millis(200), cap: Duration::from_secs(30), jitter: 0.2 };

/// After this number of consecutive trips (about three seconds), the publisher releases its slots to others until it tries the sink again.
const TRIPS_ASIDE: u32 = 4;

/// The state of the circuit breaker.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The breaker is open until this time.
    open_until: Option<Instant>,
    /// Number of consecutive trips.
    trips: u32,
    failures_in_a_row: usize,
}

impl Breaker {
    /// Returns how long the breaker stays open, or `None` if it is closed.
    pub(super) fn wait(&self) -> Option<Duration> {
        let left = self.state().open_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether the publisher releases its slots to other publishers for now.
    pub(super) fn stands_aside(&self) -> bool {
        self.state().trips >= TRIPS_ASIDE && self.wait().is_some()
    }

    /// Returns how many events may be sent at the same time: only a few until the sink has accepted something again.
    pub(super) fn wave_max(&self, wave_max: usize) -> usize {
        if self.state().trips > 0 { FAILURES_MAX } else { wave_max }
    }

    /// Opens the breaker, for at least `asked` if given; `random` adds jitter. Returns for how long.
    pub(super) fn trip(&self, asked: Option<Duration>, random: f64) -> Duration {
        let mut state = self.state();
        state.trips = state.trips.saturating_add(1);
        state.failures_in_a_row = 0;
        let wait = WAIT.delay(state.trips, random).max(asked.unwrap_or_default());
        state.open_until = Some(Instant::now() + wait);
        wait
    }

    /// Counts the results of a wave. If the sink is considered unavailable, returns its last error.
    pub(super) fn blames(&self, answers: &[Delivery]) -> Option<String> {
        let mut state = self.state();
        let mut last = None;
        for answer in answers {
            match answer {
                Delivery::Refused { why } | Delivery::Unknown { why } => last = Some(why),
                // An event that the sink rejects as unacceptable shows that the sink works.
                Delivery::Acknowledged | Delivery::Unacceptable { .. } => {
                    state.failures_in_a_row = 0;
                    return None;
                }
            }
        }
        state.failures_in_a_row += answers.len();
        last.filter(|_| state.failures_in_a_row >= FAILURES_MAX).cloned()
    }

    /// Records that the sink has accepted something. Returns whether this closed the breaker.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state();
        if state.failures_in_a_row > 0 {
            return false;
        }
        state.open_until = None;
        std::mem::take(&mut state.trips) > 0
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Delivery {
        Delivery::Refused { why: "no".to_owned() }
    }

    #[test]
    fn one_event_that_fails_among_others_is_not_the_sinks_fault() {
        let breaker = Breaker::default();
        for _ in 0..20 {
            assert_eq!(breaker.blames(&[failed(), Delivery::Acknowledged]), None);
        }
        assert_eq!(breaker.wait(), None);
    }

    #[test]
    fn failures_in_a_row_are() {
        let breaker = Breaker::default();
        assert_eq!(breaker.blames(&[failed(), failed(), failed(), failed()]), None);
        assert_eq!(breaker.blames(&[failed()]).as_deref(), Some("no"));
    }

    #[test]
    fn a_sink_is_left_alone_for_longer_each_time_until_it_takes_something() {
        let breaker = Breaker::default();
        let first = breaker.trip(None, 0.5);
        assert!(breaker.wait().is_some_and(|wait| wait <= first));
        assert_eq!(breaker.wave_max(1_000), 5);
        assert_eq!(breaker.trip(None, 0.5), first * 2);
        assert_eq!(breaker.trip(Some(Duration::from_secs(90)), 0.5), Duration::from_secs(90));
        assert_eq!(breaker.blames(&[Delivery::Acknowledged]), None);
        assert!(breaker.close(), "it is back");
        assert_eq!((breaker.wait(), breaker.wave_max(1_000)), (None, 1_000));
        assert!(!breaker.close(), "that it works is no news");
        assert_eq!(breaker.trip(None, 0.5), first);
    }
}
