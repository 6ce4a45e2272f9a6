//! How long verbs wait for transactions of others.
//!
//! A statement that waits for a lock keeps its connection, and a pool has few of them: ten requests for one key that an open transaction holds
//! would stop all others. So a statement waits briefly (`queries/lock_wait`). Then its transaction is rolled back, its connection serves
//! others, and the verb is repeated after a pause. See ADR 0033.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::sql;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a verb is repeated while a transaction holds what it needs.
pub(crate) const HELD_MAX: Duration = Duration::from_secs(30);
/// The first and the longest pause before a verb is repeated.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Many statements wait for locks if this many stopped waiting within [`CROWD_TIME`]. They count as many for the same time afterwards.
const CROWD: usize = 3;
const CROWD_TIME: Duration = Duration::from_secs(1);
/// The maximum number of verbs of one pool that wait to be repeated; further ones fail at once. Each is a request that keeps a connection of a
/// client, and a server has 1,000.
const WAITING_MAX: usize = 100;
/// The share of a pool's connections, one in this many, on which verbs are repeated at a time.
const REPEATED_SHARE: u32 = 3;

/// The waits for locks on the connections of one pool.
#[derive(Debug)]
pub(crate) struct LockWaits {
    /// Permits to wait for being repeated, and to be repeated.
    places: Semaphore,
    turns: Semaphore,
    /// When the last [`CROWD`] statements stopped waiting.
    stopped: Mutex<VecDeque<Instant>>,
    /// Until when many statements wait, in milliseconds after `since`; 0 if there never were many.
    crowded_until_ms: AtomicU64,
    since: Instant,
}

impl LockWaits {
    pub(crate) fn new(connections_max: u32) -> Self {
        Self {
            places: Semaphore::new(WAITING_MAX),
            turns: Semaphore::new((connections_max / REPEATED_SHARE).max(1) as usize),
            stopped: Mutex::default(),
            crowded_until_ms: AtomicU64::new(0),
            since: Instant::now(),
        }
    }

    /// Returns the statement that sets how long the first attempt waits; `None`: as its session does.
    pub(crate) fn of_first(&self) -> Option<&'static str> {
        self.is_crowded(Instant::now).then_some(sql!("lock_wait/crowded"))
    }

    /// Returns the statement that sets how long a repeated attempt waits.
    pub(crate) fn of_repeated(&self) -> &'static str {
        if self.is_crowded(Instant::now) { sql!("lock_wait/crowded") } else { sql!("lock_wait/repeated") }
    }

    /// Notes that a statement stopped waiting for a lock.
    pub(crate) fn note_stopped(&self, now: Instant) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.push_back(now);
        if stopped.len() > CROWD {
            stopped.pop_front();
        }
        let recent = stopped.iter().filter(|at| now.duration_since(**at) <= CROWD_TIME).count();
        if recent >= CROWD {
            self.crowded_until_ms.store(self.ms_at(now + CROWD_TIME), Ordering::Relaxed);
        }
    }

    /// Returns a permit to wait for being repeated, unless too many verbs wait.
    pub(crate) fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// Waits for a permit to repeat a verb.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Without a crowd in the past, it does not read the clock: every verb asks this.
    fn is_crowded(&self, now: impl FnOnce() -> Instant) -> bool {
        let until_ms = self.crowded_until_ms.load(Ordering::Relaxed);
        until_ms > 0 && self.ms_at(now()) < until_ms
    }

    fn ms_at(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.since).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The pauses before the attempts of one verb.
#[derive(Debug)]
pub(crate) struct Pauses {
    until: Instant,
    next: Duration,
}

impl Pauses {
    /// For a verb that is repeated until `max` has passed.
    pub(crate) fn within(max: Duration) -> Self {
        Self { until: Instant::now() + max, next: PAUSE_MIN }
    }

    /// Waits before the next attempt. Returns `false` if there is none any more.
    pub(crate) async fn pause(&mut self) -> bool {
        // Not all at the same moment.
        let pause = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        if Instant::now() + pause >= self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.next = (self.next * 2).min(PAUSE_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_wait_less_while_many_of_them_have_stopped_waiting() {
        let waits = LockWaits::new(10);
        let at = |ms| waits.since + Duration::from_millis(ms);
        for ms in [0, 600, 1_200, 2_300] {
            waits.note_stopped(at(ms));
            assert!(!waits.is_crowded(|| at(ms)), "{ms}");
        }
        waits.note_stopped(at(2_400));
        waits.note_stopped(at(2_500));
        assert!(waits.is_crowded(|| at(3_499)));
        assert!(!waits.is_crowded(|| at(3_500)));
    }
}
