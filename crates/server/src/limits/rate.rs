//! Rate limits for each of many keys.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use milepost_core::limit::Rate;

/// Number of keys at which those with a full bucket are removed.
const KNOWN_MAX: usize = 16_384;

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock, NoOpMiddleware>;

/// A token bucket for each key.
pub(super) struct Rates<K: Hash + Eq + Clone> {
    limiter: Limiter<K>,
    clock: DefaultClock,
}

impl<K: Hash + Eq + Clone> Rates<K> {
    pub(super) fn new(rate: Rate) -> Self {
        let each = Duration::from_secs_f64(1.0 / rate.per_second).max(Duration::from_nanos(1));
        let burst = NonZeroU32::new(rate.burst).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(burst);
        Self { limiter: RateLimiter::hashmap(quota), clock: DefaultClock::default() }
    }

    /// Takes a token from the bucket of a key. `Err` contains the time until the next token.
    pub(super) fn take(&self, of: K) -> Result<(), Duration> {
        if self.limiter.len() >= KNOWN_MAX {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&of).map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_bucket_of_its_own() {
        let rates = Rates::new(Rate::new(0.001, 3));
        for _ in 0..3 {
            assert_eq!(rates.take("a"), Ok(()));
        }
        let wait = rates.take("a").unwrap_err();
        assert!(wait > Duration::from_secs(900) && wait <= Duration::from_secs(1_000), "{wait:?}");
        assert_eq!(rates.take("b"), Ok(()));
    }

    #[test]
    fn those_who_have_their_tokens_back_take_no_memory() {
        let rates = Rates::new(Rate::new(10_000.0, 1));
        for number in 0..KNOWN_MAX * 2 {
            assert_eq!(rates.take(number), Ok(()));
        }
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(rates.take(0), Ok(()));
        assert!(rates.limiter.len() < KNOWN_MAX, "{}", rates.limiter.len());
    }
}
