//! Reuse of the most recently used connection, on top of the driver's pool.
//!
//! The pool of sqlx pings each returned connection, which costs one message for each verb, and then hands out the connection that has
//! been idle longest. Consecutive verbs therefore alternate between several connections, and each connection prepares and plans every
//! statement again. This module keeps returned connections in a stack and reuses the last one first. The pool still decides how many
//! connections may exist, queues the verbs that wait for one, and replaces broken connections. See ADR 0028.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{Connection, Postgres};

/// Maximum idle time of a connection that is used without a test.
pub(crate) const REST_TRUSTED: Duration = Duration::from_secs(1);

/// Maximum time outside the pool, which enforces the maximum lifetime, and maximum idle time in the stack.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// A pool and the stack of its idle connections.
#[derive(Debug)]
pub(crate) struct IdleConnections {
    pool: PgPool,
    /// Whether returned connections are kept in the stack. False for a pool with other users: a kept connection would be missing there.
    keeps: bool,
    inside: Mutex<Inside>,
    /// Number of times that a verb waited for a connection.
    waits: AtomicU64,
}

#[derive(Debug, Default)]
struct Inside {
    /// Idle connections; the most recently returned one is last.
    at_hand: Vec<AtHand>,
    /// Number of verbs that wait for the pool. While it is not 0, returned connections go to the pool.
    asking: usize,
}

#[derive(Debug)]
struct AtHand {
    connection: Taken,
    since: Instant,
}

/// A connection in use. Dropping it returns it to the pool, which pings it first.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) connection: PoolConnection<Postgres>,
    left_pool_at: Instant,
}

/// A connection during its ping. Dropping it detaches it from the pool, which frees its permit immediately: the pool's own ping on return has
/// no time limit.
struct Tested(Option<Taken>);

/// Counts a verb in `Inside::asking` until the pool has answered or the verb is canceled.
struct Asking<'s>(&'s IdleConnections);

impl IdleConnections {
    /// For a pool without other users. Requires a Tokio runtime.
    pub(crate) fn keeping(pool: PgPool) -> Arc<Self> {
        let connections = Arc::new(Self::new(pool, true));
        tokio::spawn(clear_now_and_then(Arc::downgrade(&connections)));
        connections
    }

    /// For a pool with other users. A verb waits until its connection is in the pool again, so that the next verb reuses it.
    pub(crate) fn passing_on(pool: PgPool) -> Arc<Self> {
        Arc::new(Self::new(pool, false))
    }

    fn new(pool: PgPool, keeps: bool) -> Self {
        Self { pool, keeps, inside: Mutex::default(), waits: AtomicU64::default() }
    }

    /// Returns the pool.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns how many times a verb waited for a connection.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns the number of idle connections.
    pub(crate) fn idle(&self) -> usize {
        // The pool's count can underflow to `usize::MAX` for a moment.
        self.pool.num_idle().saturating_add(self.inside().at_hand.len())
    }

    /// Returns the most recently used idle connection, or one from the pool.
    pub(crate) async fn take(&self) -> Result<Taken, sqlx::Error> {
        let last = {
            let mut inside = self.inside();
            let last = inside.at_hand.pop();
            inside.asking += usize::from(last.is_none());
            last
        };
        let Some(AtHand { connection, since }) = last else { return self.ask(Asking(self)).await };
        if since.elapsed() < REST_TRUSTED && !self.pool.is_closed() {
            return Ok(connection);
        }
        match self.test(connection).await? {
            Some(connection) => Ok(connection),
            None => {
                self.inside().asking += 1;
                self.ask(Asking(self)).await
            }
        }
    }

    /// Pings a connection; returns `None` if it is broken.
    async fn test(&self, connection: Taken) -> Result<Option<Taken>, sqlx::Error> {
        let mut tested = Tested(Some(connection));
        let Some(taken) = tested.0.as_mut() else { return Ok(None) };
        let ping = tokio::time::timeout(self.pool.options().get_acquire_timeout(), taken.connection.ping());
        let answers = ping.await.map_err(|_| sqlx::Error::PoolTimedOut)?.is_ok();
        Ok(tested.0.take_if(|_| answers))
    }

    async fn ask(&self, _asking: Asking<'_>) -> Result<Taken, sqlx::Error> {
        if self.pool.num_idle() == 0 && self.pool.size() >= self.pool.options().get_max_connections() {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Taken { connection: self.pool.acquire().await?, left_pool_at: Instant::now() })
    }

    /// Returns a connection after a verb has completed on it and its results were read to the end.
    pub(crate) async fn bring_back(&self, mut connection: Taken) {
        if !self.keeps {
            // A timeout closes the connection.
            let _ = tokio::time::timeout(REST_TRUSTED, connection.connection.return_to_pool()).await;
            return;
        }
        let mut inside = self.inside();
        if inside.asking == 0 && !self.pool.is_closed() && connection.left_pool_at.elapsed() < AWAY_MAX {
            inside.at_hand.push(AtHand { connection, since: Instant::now() });
        }
    }

    /// Returns connections to the pool that were idle for longer than [`AWAY_MAX`].
    fn clear(&self) {
        let mut inside = self.inside();
        let unused = inside.at_hand.iter().take_while(|its| its.since.elapsed() >= AWAY_MAX).count();
        let unused: Vec<_> = inside.at_hand.drain(..unused).collect();
        drop(inside);
        drop(unused);
    }

    /// Closes idle connections immediately, and connections in use when they are returned.
    pub(crate) async fn close(&self) {
        let closing = self.pool.close();
        let at_hand = std::mem::take(&mut self.inside().at_hand);
        drop(at_hand);
        closing.await;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn clear_now_and_then(connections: Weak<IdleConnections>) {
    loop {
        tokio::time::sleep(AWAY_MAX).await;
        let Some(connections) = connections.upgrade() else { return };
        connections.clear();
    }
}

impl Drop for IdleConnections {
    fn drop(&mut self) {
        // Returning to the pool requires a runtime, which may have ended.
        for AtHand { connection, .. } in self.inside().at_hand.drain(..) {
            drop(connection.connection.detach());
        }
    }
}

impl Drop for Tested {
    fn drop(&mut self) {
        if let Some(taken) = self.0.take() {
            drop(taken.connection.detach());
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.inside().asking -= 1;
    }
}
