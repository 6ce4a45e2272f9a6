//! Wake-ups of idle processes by the sleep handshake, without a cost at commit.
//!
//! NOTIFY takes a database-wide lock at commit, so enqueues must not notify while any process is awake. One process of the
//! whole database, the *waker*, is elected by a session lock. While there is work, it checks for new work every few
//! milliseconds and notifies the others. Before it sleeps, it takes a second lock exclusively, checks once more, and then
//! waits in LISTEN. A transaction that enqueues tries to take the second lock in shared mode (`milepost.wake()`). If it gets
//! the lock, the waker is awake and cannot fall asleep before the transaction commits. If not, the transaction notifies.
//!
//! Transactions that emit events do the same for relays, with separate locks and a separate channel. Each kind of waker
//! implements [`Watch`].
//!
//! All processes listen, so a notification reaches them at the same time. When a waker dies, its session ends and releases
//! its locks; if it hangs, the other processes end its session. Until then enqueues notify, which is slow but loses nothing.

mod jobs;
mod log;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use milepost_core::sql;
use sqlx::Executor;
use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connect::WakeMode;
use crate::store::PostgresStore;

/// A handshake: a channel, and the numbers of its locks.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    channel: &'static str,
    /// Held by the waker while it sleeps.
    sleep: i32,
    /// Held by the waker for as long as it is the waker.
    waker: i32,
}

/// The check that a waker repeats.
trait Watch: Send {
    /// Interval between checks while the waker is awake, if a check is cheap.
    const LOOK_EVERY: Duration;
    /// Whether a check can miss what is committed late. If so, awake processes are notified at every check.
    const BLIND: bool;
    /// The handshake of this kind of waker.
    const HANDSHAKE: Handshake;

    /// Returns the time until there is something to notify; zero: now.
    fn due_in(&mut self) -> impl Future<Output = Result<Option<Duration>, sqlx::Error>> + Send;

    /// Returns how long the last check took.
    fn look_took(&self) -> Duration;

    /// Returns whether other processes want notifications.
    fn has_others(&self) -> bool;

    /// Returns when a sleeping waker must check again because the last check was incomplete.
    fn again_in(&self) -> Option<Duration>;
}

/// If work is due within this time, the waker does not sleep: with a high rate, tokens are refilled that often.
const DOZE_BELOW: Duration = Duration::from_millis(25);
/// Checks may take one part in this number of the time, but run at least every [`LOOK_EVERY_MAX`].
const LOOK_SHARE: u32 = 10;
/// Maximum interval between checks, if each check is expensive.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// Minimum interval between notifications of an awake waker to the other processes.
const PASS_ON_EVERY: Duration = Duration::from_millis(25);
/// Limits of the configurable time for which a sleeping waker relies on notifications.
const SLEEP_MAX_LEAST: Duration = Duration::from_millis(10);
const SLEEP_MAX_MOST: Duration = Duration::from_secs(3600);
/// How often the other processes try to become the waker.
const ELECT_EVERY: Duration = Duration::from_secs(2);
/// A waker runs a statement at least once in `PostgresOptions::sleep_max`. If it is silent for this much longer, it counts
/// as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(14);

/// The number of hints of each kind so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hints {
    ready: u64,
    stop: u64,
    batch: u64,
}

/// The hints for one process; ends its listener when dropped.
struct PostgresWakes {
    hints: watch::Receiver<Hints>,
    seen: Hints,
    task: Option<JoinHandle<()>>,
}

/// Returns a stream of hints: jobs have become ready, are to stop, or batches have pending work.
pub(crate) fn subscribe(store: &PostgresStore) -> Box<dyn WakeStream> {
    match store.inner.options.wake {
        WakeMode::Poll => {
            Box::new(Overlooked { claims: store.inner.floors.overlooked(), store: store.clone() })
        }
        WakeMode::Listen => listen(store, jobs::JobWatch::new),
    }
}

/// Returns a stream of hints that the event log has grown.
pub(crate) fn subscribe_to_log(store: &PostgresStore) -> Box<dyn WakeStream> {
    listen(store, log::LogWatch::new)
}

fn listen<W: Watch + 'static>(store: &PostgresStore, watch: fn(PostgresStore) -> W) -> Box<dyn WakeStream> {
    let (sender, hints) = watch::channel(Hints::default());
    let task = match store.inner.options.wake {
        WakeMode::Poll => None,
        WakeMode::Listen => Some(tokio::spawn(listen_for_ever(store.clone(), sender, watch))),
    };
    Box::new(PostgresWakes { hints, seen: Hints::default(), task })
}

/// The hints for a poll-only process: when a claim that may have missed a job should be repeated.
struct Overlooked {
    claims: watch::Receiver<()>,
    store: PostgresStore,
}

#[async_trait]
impl WakeStream for Overlooked {
    async fn next(&mut self) -> Wake {
        // The store holds the sender, so this never fails.
        let _ = self.claims.changed().await;
        tokio::time::sleep(self.store.inner.floors.bottom_in()).await;
        Wake::Ready
    }
}

#[async_trait]
impl WakeStream for PostgresWakes {
    async fn next(&mut self) -> Wake {
        loop {
            let hints = *self.hints.borrow_and_update();
            if hints.stop != self.seen.stop {
                self.seen.stop = hints.stop;
                return Wake::Stop;
            }
            if hints.batch != self.seen.batch {
                self.seen.batch = hints.batch;
                return Wake::Batch;
            }
            if hints.ready != self.seen.ready {
                self.seen.ready = hints.ready;
                return Wake::Ready;
            }
            if self.hints.changed().await.is_err() {
                // In poll-only mode there are no hints.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for PostgresWakes {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn listen_for_ever<W: Watch>(
    store: PostgresStore,
    hints: watch::Sender<Hints>,
    watch: fn(PostgresStore) -> W,
) {
    let mut failures = 0u32;
    while !hints.is_closed() {
        let began = Instant::now();
        if let Err(error) = Listener::open(&store, &hints, watch(store.clone())).await {
            tracing::warn!(place = store.inner.place, %error, "the connection that listens for work was lost; polling until it is restored");
        }
        // Notifications that were sent in between are lost.
        hint(&hints, Wake::Ready);
        failures = if began.elapsed() > Duration::from_secs(10) { 0 } else { failures + 1 };
        tokio::time::sleep(Duration::from_millis(100) * 2u32.pow(failures.min(6))).await;
    }
}

fn hint(hints: &watch::Sender<Hints>, wake: Wake) {
    hints.send_modify(|hints| match wake {
        Wake::Ready => hints.ready += 1,
        Wake::Stop => hints.stop += 1,
        Wake::Batch => hints.batch += 1,
    });
}

/// A session that listens and is the waker if elected.
struct Listener<'a, W> {
    hints: &'a watch::Sender<Hints>,
    session: PgListener,
    watch: W,
    sleep_max: Duration,
}

impl<'a, W: Watch> Listener<'a, W> {
    /// Listens until the connection breaks.
    async fn open(
        store: &PostgresStore,
        hints: &'a watch::Sender<Hints>,
        watch: W,
    ) -> Result<(), sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute(sql!("listen_only")).await.map(drop) })
            })
            .connect_with(store.inner.connect.clone())
            .await?;
        let mut session = PgListener::connect_with(&pool).await?;
        session.eager_reconnect(false);
        session.listen(W::HANDSHAKE.channel).await?;
        let sleep_max = store.inner.options.sleep_max.clamp(SLEEP_MAX_LEAST, SLEEP_MAX_MOST);
        let mut listener = Self { hints, session, watch, sleep_max };
        hint(hints, Wake::Ready);
        loop {
            if listener.lock(W::HANDSHAKE.waker).await? {
                listener.lead().await?;
            } else {
                listener.follow().await?;
            }
        }
    }

    /// Tries to take a lock of the handshake for this session; returns whether it did.
    async fn lock(&mut self, lock: i32) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(sql!("lock_wake")).bind(lock).fetch_one(&mut self.session).await
    }

    /// Passes on notifications; at intervals checks that the waker is not hanging.
    async fn follow(&mut self) -> Result<(), sqlx::Error> {
        let until = Instant::now() + ELECT_EVERY;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.session.try_recv()).await {
                Err(_) => break,
                Ok(notification) => self.pass_in(&notification?.ok_or(sqlx::Error::WorkerCrashed)?),
            }
        }
        let unseated = sqlx::query(sql!("remove_waker"))
            .bind((self.sleep_max + SILENCE_MAX).as_secs_f64())
            .bind(W::HANDSHAKE.waker)
            .fetch_all(&mut self.session)
            .await?;
        if !unseated.is_empty() {
            tracing::warn!("the process that passes on wake-ups did not answer; its session was terminated");
        }
        Ok(())
    }

    fn pass_in(&self, notification: &PgNotification) {
        hint(
            self.hints,
            match notification.payload() {
                "stop" => Wake::Stop,
                "batch" => Wake::Batch,
                _ => Wake::Ready,
            },
        );
    }

    /// Runs the waker: checks while there is work, sleeps when there is none.
    async fn lead(&mut self) -> Result<(), sqlx::Error> {
        let mut passed_on = Instant::now() - PASS_ON_EVERY;
        loop {
            let due_in = self.watch.due_in().await?;
            if due_in == Some(Duration::ZERO) {
                self.tell(&mut passed_on).await?;
                self.doze(self.look_again_in()).await?;
            } else if due_in.is_none_or(|due_in| due_in >= DOZE_BELOW)
                && self.lock(W::HANDSHAKE.sleep).await?
            {
                let notified = self.sleep(&mut passed_on).await?;
                sqlx::query(sql!("unlock_wake")).bind(W::HANDSHAKE.sleep).execute(&mut self.session).await?;
                if notified {
                    // After this, enqueues need not notify, even if no worker here serves the new job.
                    self.doze(W::LOOK_EVERY).await?;
                }
            } else {
                // Sleeping is not worth it, or a transaction is open that will not notify.
                if W::BLIND {
                    self.tell(&mut passed_on).await?;
                }
                // Not longer than until the work that is known, but without checking all the time.
                let known_in = due_in.unwrap_or(Duration::MAX).max(W::LOOK_EVERY);
                self.doze(self.look_again_in().min(known_in)).await?;
            }
        }
    }

    fn look_again_in(&self) -> Duration {
        (self.watch.look_took() * LOOK_SHARE).clamp(W::LOOK_EVERY, LOOK_EVERY_MAX)
    }

    /// Notifies this process and, at intervals, the others.
    async fn tell(&mut self, passed_on: &mut Instant) -> Result<(), sqlx::Error> {
        hint(self.hints, Wake::Ready);
        if self.watch.has_others() && passed_on.elapsed() >= PASS_ON_EVERY {
            sqlx::query(sql!("pass_on")).bind(W::HANDSHAKE.channel).execute(&mut self.session).await?;
            *passed_on = Instant::now();
        }
        Ok(())
    }

    /// Sleeps until a notification arrives or the next job is due, unless there is work now. Returns whether a notification
    /// arrived.
    async fn sleep(&mut self, passed_on: &mut Instant) -> Result<bool, sqlx::Error> {
        let mut due_in = self.watch.due_in().await?.unwrap_or(self.sleep_max).min(self.sleep_max);
        if let Some(again_in) = self.watch.again_in() {
            // The last check skipped jobs that were committed late, and they cause no notification: check again soon.
            due_in = due_in.min(again_in);
        }
        if W::BLIND {
            // Transactions that were open until now did not notify; this check finds their events.
            self.tell(passed_on).await?;
        }
        let notified = !due_in.is_zero() && self.doze(due_in).await?;
        hint(self.hints, Wake::Ready);
        Ok(notified)
    }

    /// Waits up to `at_most` for a notification of new work; returns whether one arrived.
    async fn doze(&mut self, at_most: Duration) -> Result<bool, sqlx::Error> {
        let until = Instant::now() + at_most;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.session.try_recv()).await {
                Err(_) => return Ok(false),
                Ok(notification) => {
                    let notification = notification?.ok_or(sqlx::Error::WorkerCrashed)?;
                    self.pass_in(&notification);
                    if notification.payload() == "ready" {
                        return Ok(true);
                    }
                }
            }
        }
    }
}
