//! Start time of the next chunk: windows, throttles, rate and duty.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::bulk::chunk::Load;
use milepost_core::port::{Store, StoreResult};
use tokio::time::Instant;

use super::Bulk;

/// The longest delay that a run may make up for: a larger lag behind its rate is forgiven.
const CATCH_UP: Duration = Duration::from_secs(1);
/// A rest that cannot be added to the time: a year.
const REST_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The store's clock, read once and advanced by this machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    now: Timestamp,
    read_at: Instant,
}

impl Clock {
    pub(super) async fn read(store: &dyn Store) -> StoreResult<Self> {
        Ok(Self { now: store.clock().await?.now, read_at: Instant::now() })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now.checked_add(self.read_at.elapsed()).unwrap_or(Timestamp::MAX)
    }
}

/// The reason why no chunk may start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) reason: String,
    /// The minimum duration, if it is known.
    pub(super) at_least: Option<Duration>,
}

impl Bulk {
    /// Returns the current hold of a run, if there is one.
    pub(super) async fn hold(&self, clock: Clock) -> Option<Hold> {
        let now = clock.now();
        if let Some(opens_at) = self.windows.as_ref().and_then(|windows| windows.opens_at(now)) {
            let wait = Duration::try_from(opens_at.duration_since(now)).unwrap_or_default();
            return Some(Hold { reason: format!("window: opens at {opens_at}"), at_least: Some(wait) });
        }
        for throttle in &self.throttles {
            if let Some(reason) = throttle.holds().await {
                return Some(Hold { reason, at_least: None });
            }
        }
        None
    }
}

/// Spaces chunks so that the rate is kept on average, and chunks use only their duty share of the time.
#[derive(Debug)]
pub(super) struct Spacing {
    /// The time until which the rate has been used up by the rows so far.
    paid_at: Instant,
}

impl Spacing {
    pub(super) fn new() -> Self {
        Self { paid_at: Instant::now() }
    }

    /// Returns when the next chunk may start after one of `rows` rows.
    pub(super) fn next(&mut self, load: Load, rows: u32, begun: Instant, ended: Instant) -> Instant {
        let took = ended - begun;
        let rest = Load { rows_per_s: None, ..load }.rest(rows, took);
        let rested = ended.checked_add(rest).unwrap_or(ended + REST_MAX);
        let Some(rate) = load.rows_per_s else {
            self.paid_at = ended;
            return rested;
        };
        let from = self.paid_at.max(begun.checked_sub(CATCH_UP).unwrap_or(begun));
        let price = Duration::try_from_secs_f64(f64::from(rows) / rate).unwrap_or(Duration::MAX);
        self.paid_at = from.checked_add(price).unwrap_or(from);
        self.paid_at.max(rested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_held_over_time_although_sleeps_end_late() {
        let load = Load { rows_per_s: Some(2_000.0), duty: 1.0 };
        let mut spacing = Spacing::new();
        let started = Instant::now();
        let mut rows = 0;
        for _ in 0..50 {
            let begun = Instant::now();
            tokio::time::sleep(Duration::from_millis(100)).await;
            rows += 500;
            let next = spacing.next(load, 500, begun, Instant::now());
            tokio::time::sleep_until(next + Duration::from_millis(7)).await;
        }
        let rate = f64::from(rows) / started.elapsed().as_secs_f64();
        assert!((1_960.0..=2_040.0).contains(&rate), "{rate}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_was_held_for_long_does_not_make_up_for_it_at_once() {
        let load = Load { rows_per_s: Some(1_000.0), duty: 1.0 };
        let mut spacing = Spacing::new();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let begun = Instant::now();
        let mut chunks = 0;
        while begun.elapsed() < Duration::from_secs(10) {
            let at = Instant::now();
            chunks += 1;
            tokio::time::sleep_until(spacing.next(load, 1_000, at, at)).await;
        }
        assert!((10..=12).contains(&chunks), "{chunks}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_beyond_the_clock_does_not_overflow() {
        let mut spacing = Spacing::new();
        let begun = Instant::now();
        let ended = begun + Duration::from_millis(300);
        let next = spacing.next(Load { rows_per_s: None, duty: 1e-300 }, 1_000, begun, ended);
        assert_eq!(next - ended, REST_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_duty_cycle_makes_it_rest_however_fast_it_may_be() {
        let mut spacing = Spacing::new();
        let begun = Instant::now();
        let ended = begun + Duration::from_millis(300);
        let next = spacing.next(Load { rows_per_s: None, duty: 0.25 }, 1_000, begun, ended);
        assert_eq!(next - ended, Duration::from_millis(900));
    }
}
