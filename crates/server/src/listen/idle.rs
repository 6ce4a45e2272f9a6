//! Idle connections: those without a request in progress. If all slots are taken, the longest idle ones are evicted, so that
//! clients that connect and send nothing do not keep others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// How long an evicted connection can still start a request that it was sending.
const GRACE: Duration = Duration::from_millis(100);

/// The idle connections of a server, longest idle first.
#[derive(Default)]
pub(super) struct Idle(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

impl Idle {
    /// Registers a new connection.
    pub(super) fn connection(self: &Arc<Self>) -> Arc<Connection> {
        let connection =
            Connection { idle: Arc::clone(self), evicted: Arc::default(), number: Mutex::default() };
        connection.rest();
        Arc::new(connection)
    }

    /// Evicts up to `count` connections, longest idle first.
    pub(super) fn evict(&self, count: usize) {
        let mut queue = self.lock();
        for _ in 0..count {
            let Some((_, evicted)) = queue.waiting.pop_first() else { return };
            evicted.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, idle unless a [`Busy`] exists.
pub(super) struct Connection {
    idle: Arc<Idle>,
    evicted: Arc<Notify>,
    /// Its number in the queue; `None` while a request is in progress.
    number: Mutex<Option<u64>>,
}

impl Connection {
    /// Marks the connection as busy until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.leave();
        Busy(Arc::clone(self))
    }

    /// Returns when the connection has been evicted.
    pub(super) async fn evicted(&self) {
        loop {
            self.evicted.notified().await;
            tokio::time::sleep(GRACE).await;
            // A request that has arrived in the meantime is served.
            if self.number().is_some() {
                return;
            }
        }
    }

    fn rest(&self) {
        let mut queue = self.idle.lock();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.insert(number, Arc::clone(&self.evicted));
        *self.number() = Some(number);
    }

    fn leave(&self) {
        let number = self.number().take();
        if let Some(number) = number {
            self.idle.lock().waiting.remove(&number);
        }
    }

    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A request in progress, until its response has been sent.
pub(super) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_make_room_and_those_with_a_request_do_not() {
        let idle = Arc::new(Idle::default());
        let connections: Vec<_> = (0..4).map(|_| idle.connection()).collect();
        let request = connections[0].begin();
        drop(connections[1].begin());
        // The idle connections are 2, 3 and 1, in this order.
        idle.evict(2);
        for (at, ends) in [(0, false), (1, false), (2, true), (3, true)] {
            let ended = tokio::time::timeout(GRACE * 2, connections[at].evicted()).await.is_ok();
            assert_eq!(ended, ends, "{at}");
        }
        drop(request);
        idle.evict(10);
        assert!(tokio::time::timeout(GRACE * 2, connections[0].evicted()).await.is_ok());
        let evicted = idle.connection();
        idle.evict(1);
        let request = evicted.begin();
        assert!(
            tokio::time::timeout(GRACE * 2, evicted.evicted()).await.is_err(),
            "it had started a request before"
        );
        drop((request, evicted, connections));
        assert!(idle.lock().waiting.is_empty());
    }
}
