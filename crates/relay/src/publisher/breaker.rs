//! Circuit breaker: stops publishing for a while when the sink accepts nothing, without counting failures of single events.
//!
//! Whether the sink is unavailable, or a long run of events is refused for their own fault, shows only when one is accepted. So each probe tries events
//! that were not tried before, twice as many as the last one as long as the sink refuses all of them, and those that fail are parked: whatever the
//! first events are, others are tried after them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::retry::RetryPolicy;

use crate::sink::Delivery;

/// After this number of consecutive failures the sink is considered unavailable.
pub(super) const FAILURES_MAX: usize = 5;
/// First and longest time for which the breaker stays open.
const WAIT: RetryPolicy =
    RetryPolicy { base: Duration::from_millis(200), cap: Duration::from_secs(30), jitter: 0.2 };

/// A probe has at most `FAILURES_MAX` times two to the power of this: more than one wave.
const DOUBLED_MAX: u32 = 10;

/// If the sink has accepted nothing for this time, the publisher releases its slots to others until it tries the sink again.
const ASIDE_AFTER: Duration = Duration::from_secs(3);

/// The state of the circuit breaker.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The breaker is open until this time.
    open_until: Option<Instant>,
    /// When the first try began that failed since the sink last accepted an event.
    failing_since: Option<Instant>,
    /// Number of consecutive trips.
    trips: u32,
    failures_in_a_row: usize,
    /// Whether the sink has accepted an event since the publisher started.
    accepted: bool,
    /// By how many times the number of events in a probe has been doubled.
    doubled: u32,
    /// Whether no event is left that was not tried before, so that only parked ones show whether the sink works.
    nothing_new: bool,
    /// The trip after which parked events were tried.
    parked_tried_after: u32,
}

/// What the results of a wave show about the sink.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The sink is considered to work. `closed`: whether this closed the breaker.
    Works { closed: bool },
    /// The sink is considered unavailable from now on. Of the events of the wave, the first `charged` have used an attempt.
    Down { why: String, charged: usize },
    /// The sink is still considered unavailable; no event of the wave has used an attempt. `opens`: whether the breaker opens again.
    StillDown { why: String, opens: bool },
}

impl Breaker {
    /// Returns how long the breaker stays open, or `None` if it is closed.
    pub(super) fn wait(&self) -> Option<Duration> {
        let left = self.state().open_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether the publisher releases its slots to other publishers for now.
    pub(super) fn stands_aside(&self) -> bool {
        self.wait().is_some()
            && self.state().failing_since.is_some_and(|since| since.elapsed() >= ASIDE_AFTER)
    }

    /// Returns how many events that were not tried before may be sent at the same time: only a few until the sink has accepted something again.
    pub(super) fn wave_max(&self, wave_max: usize) -> usize {
        let state = self.state();
        if state.trips > 0 { (FAILURES_MAX << state.doubled).min(wave_max) } else { wave_max }
    }

    /// Returns the same for parked events.
    pub(super) fn parked_wave_max(&self, wave_max: usize) -> usize {
        if self.state().trips > 0 { FAILURES_MAX } else { wave_max }
    }

    /// Returns whether parked events may be sent: after each trip once, and further only if there are no others.
    pub(super) fn may_try_parked(&self) -> bool {
        let state = self.state();
        state.trips == 0 || state.nothing_new || state.parked_tried_after != state.trips
    }

    /// Notes that no event is left that was not tried before.
    pub(super) fn found_nothing_new(&self) {
        self.state().nothing_new = true;
    }

    /// Opens the breaker after a try that began at `began`, for at least `asked` if given; `random` adds jitter. Returns for how long: at least as long as
    /// the try took, so that others have the slots half of the time if the sink does not answer.
    pub(super) fn trip(&self, began: Instant, asked: Option<Duration>, random: f64) -> Duration {
        let mut state = self.state();
        state.failing_since.get_or_insert(began);
        state.trips = state.trips.saturating_add(1);
        state.failures_in_a_row = 0;
        let took = began.elapsed().min(WAIT.cap);
        let wait = WAIT.delay(state.trips, random).max(took).max(asked.unwrap_or_default());
        state.open_until = Some(Instant::now() + wait);
        wait
    }

    /// Counts the results of a wave that began at `began`. `are_new`: whether these events were not attempted before; failures of others can be their own fault,
    /// unless nothing was accepted since the breaker opened, or since the publisher started: it may have started during an outage.
    pub(super) fn count(&self, answers: &[Delivery], began: Instant, are_new: bool) -> Verdict {
        let mut state = self.state();
        let mut last = None;
        for answer in answers {
            match answer {
                Delivery::Refused { why } | Delivery::Unknown { why } => last = Some(why),
                // An event that the sink rejects as unacceptable shows that the sink works.
                Delivery::Acknowledged | Delivery::Unacceptable { .. } => {
                    let closed = state.trips > 0;
                    *state = State { accepted: true, ..State::default() };
                    return Verdict::Works { closed };
                }
            }
        }
        let Some(why) = last.cloned() else { return Verdict::Works { closed: false } };
        if state.trips > 0 && are_new {
            if answers.iter().all(|answer| matches!(answer, Delivery::Refused { .. })) {
                state.doubled = (state.doubled + 1).min(DOUBLED_MAX);
            }
            state.nothing_new = false;
            return Verdict::StillDown { why, opens: true };
        }
        if state.trips > 0 {
            state.parked_tried_after = state.trips;
            // Not before new events have been tried: parked ones may fail for ever.
            return Verdict::StillDown { why, opens: std::mem::take(&mut state.nothing_new) };
        }
        if !are_new && state.accepted {
            return Verdict::Works { closed: false };
        }
        state.failing_since.get_or_insert(began);
        let before = state.failures_in_a_row;
        state.failures_in_a_row += answers.len();
        if state.failures_in_a_row < FAILURES_MAX {
            return Verdict::Works { closed: false };
        }
        Verdict::Down { why, charged: FAILURES_MAX - before.min(FAILURES_MAX) }
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

    fn now() -> Instant {
        Instant::now()
    }

    const WORKS: Verdict = Verdict::Works { closed: false };

    fn down(charged: usize) -> Verdict {
        Verdict::Down { why: "no".to_owned(), charged }
    }

    fn still_down(opens: bool) -> Verdict {
        Verdict::StillDown { why: "no".to_owned(), opens }
    }

    #[test]
    fn one_event_that_fails_among_others_is_not_the_sinks_fault() {
        let breaker = Breaker::default();
        for _ in 0..20 {
            assert_eq!(breaker.count(&[failed(), Delivery::Acknowledged], now(), true), WORKS);
        }
        assert_eq!(breaker.wait(), None);
    }

    #[test]
    fn five_failures_in_a_row_are_and_no_more_than_five_events_use_an_attempt() {
        let breaker = Breaker::default();
        assert_eq!(breaker.count(&[failed(), failed(), failed(), failed()], now(), true), WORKS);
        assert_eq!(breaker.count(&[failed(), failed(), failed()], now(), true), down(1));
    }

    #[test]
    fn failures_of_parked_events_are_their_own_until_the_breaker_has_opened() {
        let breaker = Breaker::default();
        breaker.count(&[Delivery::Acknowledged], now(), true);
        for _ in 0..20 {
            assert_eq!(breaker.count(&[failed()], now(), false), WORKS);
        }
        breaker.trip(now(), None, 0.5);
        assert_eq!(breaker.count(&[failed()], now(), false), still_down(false));
        assert_eq!(breaker.count(&[failed(), failed()], now(), true), still_down(true));
        assert_eq!(breaker.count(&[Delivery::Acknowledged], now(), false), Verdict::Works { closed: true });
        assert_eq!(breaker.count(&[failed()], now(), false), WORKS);
    }

    #[test]
    fn a_publisher_that_starts_during_an_outage_notices_it_by_parked_events() {
        let breaker = Breaker::default();
        assert_eq!(breaker.count(&[failed(), failed(), failed()], now(), false), WORKS);
        assert_eq!(breaker.count(&[failed(), failed(), failed()], now(), false), down(2));
    }

    #[test]
    fn parked_events_are_tried_once_after_each_trip_and_open_the_breaker_only_if_there_are_no_others() {
        let breaker = Breaker::default();
        assert!(breaker.may_try_parked());
        breaker.trip(now(), None, 0.5);
        assert!(breaker.may_try_parked());
        assert_eq!(breaker.count(&[failed()], now(), false), still_down(false));
        assert!(!breaker.may_try_parked());
        breaker.found_nothing_new();
        assert!(breaker.may_try_parked());
        assert_eq!(breaker.count(&[failed()], now(), false), still_down(true));
        breaker.trip(now(), None, 0.5);
        assert!(breaker.may_try_parked());
    }

    #[test]
    fn each_probe_tries_more_new_events_as_long_as_all_are_refused() {
        let breaker = Breaker::default();
        breaker.trip(now(), None, 0.5);
        let mut tried = Vec::new();
        for _ in 0..9 {
            tried.push(breaker.wave_max(1_000));
            breaker.count(&[failed()], now(), true);
        }
        assert_eq!(tried, [5, 10, 20, 40, 80, 160, 320, 640, 1_000]);
        assert_eq!(breaker.parked_wave_max(1_000), 5);
        let unknown = Delivery::Unknown { why: "no answer".to_owned() };
        let slow = Breaker::default();
        slow.trip(now(), None, 0.5);
        slow.count(&[failed(), unknown], now(), true);
        assert_eq!(slow.wave_max(1_000), 5, "a sink that does not answer is not given more");
    }

    #[test]
    fn a_sink_is_left_alone_for_longer_each_time_until_it_accepts_an_event() {
        let breaker = Breaker::default();
        let first = breaker.trip(now(), None, 0.5);
        assert!(breaker.wait().is_some_and(|wait| wait <= first));
        assert_eq!(breaker.wave_max(1_000), 5);
        assert_eq!(breaker.count(&[failed()], now(), true), still_down(true));
        assert_eq!(breaker.trip(now(), None, 0.5), first * 2);
        assert!(!breaker.stands_aside());
        assert_eq!(breaker.trip(now(), Some(Duration::from_secs(90)), 0.5), Duration::from_secs(90));
        assert_eq!(breaker.count(&[Delivery::Acknowledged], now(), true), Verdict::Works { closed: true });
        assert_eq!((breaker.wait(), breaker.wave_max(1_000)), (None, 1_000));
        assert_eq!(breaker.count(&[Delivery::Acknowledged], now(), true), WORKS, "that it works is no news");
        assert_eq!(breaker.trip(now(), None, 0.5), first);
    }

    #[test]
    fn a_publisher_stands_aside_after_three_seconds_of_failures_however_many_there_were() {
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let breaker = Breaker::default();
        breaker.trip(ago(2), None, 0.5);
        assert!(!breaker.stands_aside());
        let silent = Breaker::default();
        assert!(
            silent.trip(ago(5), None, 0.5) >= Duration::from_secs(5),
            "a try that took long is followed by a long wait"
        );
        assert!(silent.stands_aside());
        silent.count(&[Delivery::Acknowledged], now(), true);
        assert!(!silent.stands_aside());
        let single = Breaker::default();
        for _ in 0..2 {
            single.count(&[failed()], ago(4), true);
        }
        single.trip(now(), None, 0.5);
        assert!(single.stands_aside(), "failures before the breaker opens count");
    }
}
