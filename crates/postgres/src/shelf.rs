//! Connections at hand: those that verbs have just brought back.
//!
//! The driver's pool tests each connection that comes back, which is a message to the server for every verb, and then gives out the
//! one that has rested longest. Verbs that follow one another thus take turns on several connections, each of which prepares and
//! plans every statement anew. Here a connection that a verb has brought back whole is at hand at once, and the last one is taken
//! first. Everything else is left to the pool: how many there may be, who waits for one, and what becomes of those that broke.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{Connection, Postgres};

/// How long a connection stays away from the pool at most, which closes those that are old.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// A pool, and the connections of it that are at hand.
#[derive(Debug)]
pub(crate) struct Shelf {
    pool: PgPool,
    /// How many are kept at hand: the pool's other users, who wait there, must find some.
    at_hand_max: usize,
    /// How long a connection may have rested to be used without a test.
    rest_trusted: Duration,
    inside: Mutex<Inside>,
    /// How many times a connection had to be waited for.
    waits: AtomicU64,
}

#[derive(Debug, Default)]
struct Inside {
    /// The one that came last is last.
    at_hand: Vec<AtHand>,
    /// How many ask the pool for one: as long as somebody does, what comes back goes there.
    asking: usize,
}

#[derive(Debug)]
struct AtHand {
    connection: Taken,
    since: Instant,
}

/// A connection in use. One that is dropped goes back to the pool, which finds out where it stands.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) connection: PoolConnection<Postgres>,
    left_pool_at: Instant,
}

/// Who asks the pool, until he has an answer or gives up.
struct Asking<'s>(&'s Shelf);

impl Shelf {
    pub(crate) fn new(pool: PgPool, at_hand_max: usize, rest_trusted: Duration) -> Self {
        Self { pool, at_hand_max, rest_trusted, inside: Mutex::default(), waits: AtomicU64::default() }
    }

    /// The pool itself.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// How many times a connection had to be waited for.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// How many connections nobody uses.
    pub(crate) fn idle(&self) -> usize {
        self.pool.num_idle() + self.inside().at_hand.len()
    }

    /// The connection that came back last, or one of the pool.
    pub(crate) async fn take(&self) -> Result<Taken, sqlx::Error> {
        let at_hand = {
            let mut inside = self.inside();
            let last = inside.at_hand.pop();
            inside.asking += usize::from(last.is_none());
            last
        };
        let Some(AtHand { mut connection, since }) = at_hand else {
            return self.ask(Asking(self)).await;
        };
        if since.elapsed() < self.rest_trusted {
            return Ok(connection);
        }
        let test =
            tokio::time::timeout(self.pool.options().get_acquire_timeout(), connection.connection.ping());
        if test.await.map_err(|_| sqlx::Error::PoolTimedOut)?.is_ok() {
            return Ok(connection);
        }
        self.inside().asking += 1;
        let asking = Asking(self);
        drop(connection);
        self.ask(asking).await
    }

    async fn ask(&self, _asking: Asking<'_>) -> Result<Taken, sqlx::Error> {
        if self.pool.num_idle() == 0 && self.pool.size() >= self.pool.options().get_max_connections() {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Taken { connection: self.pool.acquire().await?, left_pool_at: Instant::now() })
    }

    /// Brings back a connection on which a verb has ended, and nothing is left to be read.
    pub(crate) fn bring_back(&self, connection: Taken) {
        let mut inside = self.inside();
        let wanted = inside.asking == 0 && inside.at_hand.len() < self.at_hand_max;
        if wanted && !self.pool.is_closed() && connection.left_pool_at.elapsed() < AWAY_MAX {
            inside.at_hand.push(AtHand { connection, since: Instant::now() });
        }
        // What has long not been taken was needed for a moment only.
        let unused = inside.at_hand.iter().take_while(|its| its.since.elapsed() > AWAY_MAX).count();
        let unused: Vec<_> = inside.at_hand.drain(..unused).collect();
        drop(inside);
        drop(unused);
    }

    /// Closes all connections; those in use as soon as they are brought back.
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

impl Drop for Shelf {
    fn drop(&mut self) {
        // Going back to the pool needs a runtime, and there may be none any more.
        for AtHand { connection, .. } in self.inside().at_hand.drain(..) {
            drop(connection.connection.detach());
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.inside().asking -= 1;
    }
}
