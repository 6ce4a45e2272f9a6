//! Connections at hand: those that verbs have just brought back.
//!
//! The driver's pool tests each connection that comes back, which is a message to the server for every verb, and then gives out the
//! one that has rested longest. Verbs that follow one another thus take turns on several connections, each of which prepares and
//! plans every statement anew. Here a connection that a verb has brought back whole is at hand at once, and the last one is taken
//! first. Everything else is left to the pool: how many there may be, who waits for one, and what becomes of those that broke.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{Connection, Postgres};

use crate::connect::REST_TRUSTED;

/// How long a connection stays away from the pool, which closes those that are old; and how long one stays at hand that nobody takes.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// A pool, and the connections of it that are at hand.
#[derive(Debug)]
pub(crate) struct Shelf {
    pool: PgPool,
    /// Whether connections are kept at hand. Where others use the pool, too, they must find all of them there.
    keeps: bool,
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

/// A connection that is being tested. One that is dropped is gone: a test of the pool's might never end, and its place would be taken as long.
struct Tested(Option<Taken>);

/// Who asks the pool, until he has an answer or gives up.
struct Asking<'s>(&'s Shelf);

impl Shelf {
    /// Of a pool that nobody else uses. To be called within the runtime.
    pub(crate) fn keeping(pool: PgPool) -> Arc<Self> {
        let shelf = Arc::new(Self::new(pool, true));
        tokio::spawn(clear_now_and_then(Arc::downgrade(&shelf)));
        shelf
    }

    /// Of a pool that others use, too: a verb waits until its connection is back there, so that the next one finds it.
    pub(crate) fn passing_on(pool: PgPool) -> Arc<Self> {
        Arc::new(Self::new(pool, false))
    }

    fn new(pool: PgPool, keeps: bool) -> Self {
        Self { pool, keeps, inside: Mutex::default(), waits: AtomicU64::default() }
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
        // The pool's count may be below zero for a moment.
        self.pool.num_idle().saturating_add(self.inside().at_hand.len())
    }

    /// The connection that came back last, or one of the pool.
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

    /// The connection, if it still answers.
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

    /// Brings back a connection on which a verb has ended, and nothing is left to be read.
    pub(crate) async fn bring_back(&self, mut connection: Taken) {
        if !self.keeps {
            // Given up when it takes long, which closes the connection.
            let _ = tokio::time::timeout(REST_TRUSTED, connection.connection.return_to_pool()).await;
            return;
        }
        let mut inside = self.inside();
        if inside.asking == 0 && !self.pool.is_closed() && connection.left_pool_at.elapsed() < AWAY_MAX {
            inside.at_hand.push(AtHand { connection, since: Instant::now() });
        }
    }

    /// Gives what has long not been taken back to the pool.
    fn clear(&self) {
        let mut inside = self.inside();
        let unused = inside.at_hand.iter().take_while(|its| its.since.elapsed() >= AWAY_MAX).count();
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

async fn clear_now_and_then(shelf: Weak<Shelf>) {
    loop {
        tokio::time::sleep(AWAY_MAX).await;
        let Some(shelf) = shelf.upgrade() else { return };
        shelf.clear();
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
