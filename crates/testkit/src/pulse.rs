//! Detection of stalls of the machine, for tests that measure time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use milepost_core::port::Store;
use tokio::task::JoinHandle;

/// How often a beat is taken.
const EVERY: Duration = Duration::from_millis(10);
/// A machine on which a turn takes longer than that, beyond what it should, tells nothing about how quick others are.
pub const STALL: Duration = Duration::from_millis(50);

/// Asks a database something again and again, and remembers the slowest turn. Stops when dropped.
pub struct Pulse {
    slowest_us: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Pulse {
    /// Starts on a store, which it asks for the time: that wakes nobody.
    pub fn on(store: Arc<dyn Store>) -> Self {
        let slowest_us = Arc::new(AtomicU64::new(0));
        let of_task = slowest_us.clone();
        let task = tokio::spawn(async move {
            loop {
                let began = Instant::now();
                tokio::time::sleep(EVERY).await;
                if store.clock().await.is_err() {
                    return;
                }
                note(&of_task, began);
            }
        });
        Self { slowest_us, task }
    }

    /// The slowest turn since the last call, beyond what it should take.
    pub fn slowest(&self) -> Duration {
        Duration::from_micros(self.slowest_us.swap(0, Ordering::SeqCst))
    }
}

/// Notes how long a turn took that began then.
fn note(slowest_us: &AtomicU64, began: Instant) {
    let took = began.elapsed().saturating_sub(EVERY);
    slowest_us.fetch_max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}
