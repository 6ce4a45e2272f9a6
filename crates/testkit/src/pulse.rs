//! Detection of machine stalls, for tests that measure time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use milepost_core::ident::WorkerId;
use milepost_core::port::Store;
use tokio::task::JoinHandle;

/// Interval between measurements.
const EVERY: Duration = Duration::from_millis(10);
/// If a measurement takes this much longer than it should, the machine is too slow for conclusions about the speed of the code under test.
pub const STALL: Duration = Duration::from_millis(50);

/// Queries a database repeatedly and records the slowest measurement. Stops when dropped.
pub struct Pulse {
    slowest_us: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Pulse {
    /// Starts measuring on a store. It queries the store's clock, which wakes no worker.
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self::measuring(store, None)
    }

    /// Starts measuring on a store, including commits: it also sends heartbeats of this worker, which wake no worker. A disk that is busy with the
    /// commits of others delays claims, but no queries.
    pub fn of_commits(store: Arc<dyn Store>, worker: WorkerId) -> Self {
        Self::measuring(store, Some(worker))
    }

    fn measuring(store: Arc<dyn Store>, worker: Option<WorkerId>) -> Self {
        let slowest_us = Arc::new(AtomicU64::new(0));
        let of_task = slowest_us.clone();
        let task = tokio::spawn(async move {
            loop {
                let began = Instant::now();
                tokio::time::sleep(EVERY).await;
                if store.clock().await.is_err() {
                    return;
                }
                if let Some(worker) = worker
                    && store.heartbeat(worker).await.is_err()
                {
                    return;
                }
                note(&of_task, began);
            }
        });
        Self { slowest_us, task }
    }

    /// Returns the delay of the slowest measurement since the last call.
    pub fn slowest(&self) -> Duration {
        Duration::from_micros(self.slowest_us.swap(0, Ordering::SeqCst))
    }
}

/// Records the delay of a measurement that started at `began`.
fn note(slowest_us: &AtomicU64, began: Instant) {
    let took = began.elapsed().saturating_sub(EVERY);
    slowest_us.fetch_max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}
