//! How often somebody may try to sign in.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::client::Client;

/// How many attempts of an address are free.
const FREE: u32 = 5;
/// The longest an address waits. There is no wait for all together: others could keep it up, and so keep out who has a token.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// After so long without an attempt nothing is held against anybody.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// How many addresses are remembered.
const ADDRESSES_MAX: usize = 4_096;

/// Attempts that failed, as far as anybody knows.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<Client, Failures>>);

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// How much longer the next attempt must wait: twice as long with each that failed.
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
    /// Counts an attempt, as a failed one until the contrary is known, so that many at once gain nothing. `Err`: it may not be made
    /// before so much time has passed.
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

    /// The attempt was none that failed.
    pub(super) fn succeeded(&self, client: Client) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&client);
    }
}

/// Forgets what is old, and if that is not enough the oldest.
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
        assert_eq!(attempts.begin(client(2), begin), Ok(()), "others need not wait");
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
