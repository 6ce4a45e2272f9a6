//! The rate limit of sign-in attempts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::client::Client;

/// Number of attempts of an address without a wait.
const FREE: u32 = 5;
/// Maximum wait of an address. There is no common limit for all addresses: others could use it to keep out users with a token.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// The age at which failed attempts no longer count.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// Maximum number of addresses that are remembered.
const ADDRESSES_MAX: usize = 4_096;

/// Failed attempts by address.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<Client, Failures>>);

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// Returns the remaining wait before the next attempt. The wait doubles with each failed attempt.
    fn wait(self, now: Instant) -> Duration {
        let Some(over) = self.count.checked_sub(FREE) else { return Duration::ZERO };
        let wait = Duration::from_secs(1_u64.checked_shl(over).unwrap_or(u64::MAX)).min(WAIT_MAX);
        (self.last + wait).saturating_duration_since(now)
    }

    fn is_forgotten(self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGOTTEN_AFTER
    }
}

impl Attempts {
    /// Records an attempt. It counts as failed until [`succeeded`](Self::succeeded), so that concurrent attempts gain nothing.
    /// `Err` contains the time to wait before the next attempt.
    pub(super) fn begin(&self, client: Client, now: Instant) -> Result<(), Duration> {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = of.get(&client).copied().filter(|failures| !failures.is_forgotten(now));
        let wait = before.map_or(Duration::ZERO, |failures| failures.wait(now));
        if !wait.is_zero() {
            return Err(wait);
        }
        make_room(&mut of, client, now);
        let count = before.map_or(0, |failures| failures.count).saturating_add(1);
        of.insert(client, Failures { count, last: now });
        Ok(())
    }

    /// Removes the failed attempts of this address after a successful one.
    pub(super) fn succeeded(&self, client: Client) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&client);
    }
}

/// Removes expired entries, and the oldest one if that is not enough.
fn make_room(of: &mut HashMap<Client, Failures>, client: Client, now: Instant) {
    if of.len() < ADDRESSES_MAX || of.contains_key(&client) {
        return;
    }
    of.retain(|_, failures| !failures.is_forgotten(now));
    if of.len() >= ADDRESSES_MAX
        && let Some(oldest) = of.iter().min_by_key(|(_, failures)| failures.last).map(|(client, _)| *client)
    {
        of.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(number: u32) -> Client {
        Client::at(Ipv4Addr::from(number).into())
    }

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn each_failed_attempt_beyond_the_free_ones_doubles_the_wait() {
        let (attempts, begin) = (Attempts::default(), Instant::now());
        for _ in 0..FREE {
            assert_eq!(attempts.begin(client(1), begin), Ok(()));
        }
        assert_eq!(attempts.begin(client(1), begin), Err(second(1)));
        assert_eq!(attempts.begin(client(2), begin), Ok(()), "other addresses need not wait");
        let mut now = begin;
        for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            now += second(wait);
            assert_eq!(attempts.begin(client(1), now), Ok(()), "{wait}");
            assert!(attempts.begin(client(1), now).is_err());
        }
        assert_eq!(attempts.begin(client(1), now + FORGOTTEN_AFTER), Ok(()));
        assert_eq!(attempts.begin(client(1), now + FORGOTTEN_AFTER), Ok(()));
    }

    #[test]
    fn who_has_signed_in_begins_anew() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..20 {
            assert_eq!(attempts.begin(client(1), now), Ok(()));
            attempts.succeeded(client(1));
        }
    }

    #[test]
    fn many_addresses_keep_nobody_out_and_take_no_more_memory() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 0..10_000 {
            assert_eq!(attempts.begin(client(number), now), Ok(()), "{number}");
        }
        assert!(attempts.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
