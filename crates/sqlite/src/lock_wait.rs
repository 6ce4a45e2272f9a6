//! How connections wait for other processes that lock the file.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// The interval in which a connection checks whether the file is unlocked. SQLite's default back-off sleeps longer each time and therefore
/// loses against busy processes.
const POLL_US: std::ops::Range<u64> = 600..1400;

/// The time until which a connection waits for a lock.
#[derive(Clone)]
pub(crate) struct Patience(Arc<Mutex<Instant>>);

impl Patience {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self(Arc::new(Mutex::new(deadline)))
    }

    /// Sets the time until which the connection waits.
    pub(crate) fn extend(&self, deadline: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Installs the busy handler of every connection: it polls about every millisecond, with jitter, until the deadline.
pub(crate) fn wait_politely(conn: &mut Connection, patience: Patience) -> rusqlite::Result<()> {
    conn.busy_handler(Some(move |_tries: i32| {
        if patience.is_over() {
            return false;
        }
        thread::sleep(Duration::from_micros(fastrand::u64(POLL_US)));
        true
    }))
}
