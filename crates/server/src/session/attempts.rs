//! How often somebody may try to sign in.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::client::Client;

/// How many attempts of an address are free, and of all together.
const FREE: u32 = 5;
const FREE_OF_ALL: u32 = 100;
/// The longest an address waits, and all together: who knows a token is not to be kept out by others for long.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
const WAIT_MAX_OF_ALL: Duration = Duration::from_secs(2);
/// After so long without an attempt nothing is held against anybody.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// How many addresses are remembered.
const ADDRESSES_MAX: usize = 4_096;

/// Attempts that failed, as far as anybody knows.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<State>);

#[derive(Default)]
struct State {
    of: HashMap<Client, Failures>,
    all: Option<Failures>,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// How much longer the next attempt must wait: twice as long with each that failed.
    fn wait(self, free: u32, max: Duration, now: Instant) -> Duration {
        let Some(over) = self.count.checked_sub(free) else { return Duration::ZERO };
        let wait = Duration::from_secs(1_u64.checked_shl(over).unwrap_or(u64::MAX)).min(max);
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
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { of, all } = &mut *state;
        let its = of.get(&client).copied().filter(|failures| !failures.is_forgotten(now));
        let everybodys = all.filter(|failures| !failures.is_forgotten(now));
        let wait = its.map_or(Duration::ZERO, |failures| failures.wait(FREE, WAIT_MAX, now));
        let wait = everybodys.map_or(wait, |all| wait.max(all.wait(FREE_OF_ALL, WAIT_MAX_OF_ALL, now)));
        if !wait.is_zero() {
            return Err(wait);
        }
        let next = |failures: Option<Failures>| {
            let count = failures.map_or(0, |failures| failures.count);
            Failures { count: count.saturating_add(1), last: now }
        };
        make_room(of, client, now);
        of.insert(client, next(its));
        *all = Some(next(everybodys));
        Ok(())
    }

    /// The attempt was none that failed.
    pub(super) fn succeeded(&self, client: Client) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.of.remove(&client);
        if let Some(all) = &mut state.all {
            all.count = all.count.saturating_sub(1);
        }
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
    fn many_addresses_together_wait_a_little_and_take_no_more_memory() {
        let (attempts, mut now) = (Attempts::default(), Instant::now());
        let mut waited = 0;
        for number in 0..10_000 {
            if let Err(wait) = attempts.begin(client(number), now) {
                assert!(wait <= WAIT_MAX_OF_ALL);
                waited += 1;
                now += wait;
            }
        }
        assert!(waited > 1_000, "{waited}");
        let state = attempts.0.lock().unwrap();
        assert!(state.of.len() <= ADDRESSES_MAX);
    }
}
