//! Wake-ups without a cost on the commit path: the sleep handshake.
//!
//! NOTIFY takes a database-wide lock at commit, so enqueues must not notify as long as anybody is awake. One
//! *waker* in the whole database is elected by a session lock. While there is work it looks every few
//! milliseconds and passes on what it sees. Before it sleeps it takes a second lock exclusively, looks once
//! more, and then waits in LISTEN. An enqueuer tries that second lock shared (`milepost.wake()`): when it gets
//! it, nobody sleeps and nobody can fall asleep before it commits; when it does not, it notifies.
//!
//! Who emits does the same towards relays, with locks and a channel of their own: what a waker looks at is its [`Watch`].
//!
//! Everybody listens, so a notification reaches all processes at once. A waker that is gone gives up its locks
//! with its session; one that hangs is unseated by the others. Until then enqueuers notify, which is slow but
//! loses nothing.

mod jobs;
mod log;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use sqlx::Executor;
use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connect::WakeMode;
use crate::statement;
use crate::store::PostgresStore;

/// A handshake: a channel, and the numbers of its locks.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    channel: &'static str,
    /// Held by the waker while it sleeps.
    sleep: i32,
    /// Held by the waker for as long as it lives.
    waker: i32,
}

/// What a waker looks at.
trait Watch: Send {
    /// How often it looks while it is awake, if a look costs little.
    const LOOK_EVERY: Duration;
    /// Whether looking may miss what was committed late: then whoever is awake is told at every look.
    const BLIND: bool;
    /// Its handshake.
    const HANDSHAKE: Handshake;

    /// How soon there is something to be told of; zero: now.
    fn due_in(&mut self) -> impl Future<Output = Result<Option<Duration>, sqlx::Error>> + Send;

    /// How long the last look took.
    fn look_took(&self) -> Duration;

    /// Whether other processes want to know.
    fn has_others(&self) -> bool;

    /// When a sleeper has to look again because the last look was not at everything.
    fn again_in(&self) -> Option<Duration>;
}

/// What is due within this is not worth falling asleep for: tokens of a high rate come back so often.
const DOZE_BELOW: Duration = Duration::from_millis(25);
/// Looking may take one part in this many of the time, as long as it looks once in [`LOOK_EVERY_MAX`].
const LOOK_SHARE: u32 = 10;
/// How seldom a waker looks to whom every look is dear.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// How often an awake waker tells the other processes, at most.
const PASS_ON_EVERY: Duration = Duration::from_millis(25);
/// Between these it can be chosen how long a sleeping waker trusts that nothing was missed.
const SLEEP_MAX_LEAST: Duration = Duration::from_millis(10);
const SLEEP_MAX_MOST: Duration = Duration::from_secs(3600);
/// How often the others try to become the waker.
const ELECT_EVERY: Duration = Duration::from_secs(2);
/// A waker speaks at least once in `PostgresOptions::sleep_max`; one that is silent for so much longer
/// hangs.
const SILENCE_MAX: Duration = Duration::from_secs(14);

/// How many hints of each sort there have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hints {
    ready: u64,
    stop: u64,
    batch: u64,
}

/// The hints of one process; ends its listener when dropped.
struct PostgresWakes {
    hints: watch::Receiver<Hints>,
    seen: Hints,
    task: Option<JoinHandle<()>>,
}

/// Hints that jobs have become ready, are to stop, or are left to be worked out.
pub(crate) fn subscribe(store: &PostgresStore) -> Box<dyn WakeStream> {
    match store.inner.options.wake {
        WakeMode::Poll => {
            Box::new(Overlooked { claims: store.inner.floors.overlooked(), store: store.clone() })
        }
        WakeMode::Listen => listen(store, jobs::JobWatch::new),
    }
}

/// Hints that the log has grown.
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

/// The hints of a process that polls only: when a claim that may have overlooked something is worth repeating.
struct Overlooked {
    claims: watch::Receiver<()>,
    store: PostgresStore,
}

#[async_trait]
impl WakeStream for Overlooked {
    async fn next(&mut self) -> Wake {
        // The store holds the sender: this never fails.
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
                // Poll-only: there are no hints.
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
            tracing::warn!(place = store.inner.place, %error, "listening for work broke off; polling until it is back");
        }
        // Whatever was notified in between is lost.
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

/// One session that listens, and is the waker if elected.
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
                Box::pin(async move { connection.execute(statement::LISTEN_ONLY).await.map(drop) })
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

    /// Takes a lock of the handshake for this session, unless it is held.
    async fn lock(&mut self, lock: i32) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(statement::LOCK_WAKE).bind(lock).fetch_one(&mut self.session).await
    }

    /// Passes on what the waker and the enqueuers say; now and then sees whether the waker is well.
    async fn follow(&mut self) -> Result<(), sqlx::Error> {
        let until = Instant::now() + ELECT_EVERY;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.session.try_recv()).await {
                Err(_) => break,
                Ok(notification) => self.pass_in(&notification?.ok_or(sqlx::Error::WorkerCrashed)?),
            }
        }
        let unseated = sqlx::query(statement::UNSEAT_WAKER)
            .bind((self.sleep_max + SILENCE_MAX).as_secs_f64())
            .bind(W::HANDSHAKE.waker)
            .fetch_all(&mut self.session)
            .await?;
        if !unseated.is_empty() {
            tracing::warn!("the process that passes on wake-ups did not answer; its session was ended");
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

    /// The waker's life: look while there is work, sleep when there is none.
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
                sqlx::query(statement::UNLOCK_WAKE)
                    .bind(W::HANDSHAKE.sleep)
                    .execute(&mut self.session)
                    .await?;
                if notified {
                    // Whoever enqueues next need not notify, even if nobody here serves what came.
                    self.doze(W::LOOK_EVERY).await?;
                }
            } else {
                // It is not worth it, or somebody has a transaction open and will not notify.
                if W::BLIND {
                    self.tell(&mut passed_on).await?;
                }
                self.doze(self.look_again_in()).await?;
            }
        }
    }

    fn look_again_in(&self) -> Duration {
        (self.watch.look_took() * LOOK_SHARE).clamp(W::LOOK_EVERY, LOOK_EVERY_MAX)
    }

    /// Tells this process, and now and then the others.
    async fn tell(&mut self, passed_on: &mut Instant) -> Result<(), sqlx::Error> {
        hint(self.hints, Wake::Ready);
        if self.watch.has_others() && passed_on.elapsed() >= PASS_ON_EVERY {
            sqlx::query(statement::PASS_ON).bind(W::HANDSHAKE.channel).execute(&mut self.session).await?;
            *passed_on = Instant::now();
        }
        Ok(())
    }

    /// Sleeps until somebody notifies or the next job is due, unless there is work now. Answers whether
    /// somebody notified.
    async fn sleep(&mut self, passed_on: &mut Instant) -> Result<bool, sqlx::Error> {
        let mut due_in = self.watch.due_in().await?.unwrap_or(self.sleep_max).min(self.sleep_max);
        if let Some(again_in) = self.watch.again_in() {
            // What was committed late was not looked at, and nobody will notify: look again soon.
            due_in = due_in.min(again_in);
        }
        if W::BLIND {
            // Whoever had a transaction open until now did not notify, and will be found at this look.
            self.tell(passed_on).await?;
        }
        let notified = !due_in.is_zero() && self.doze(due_in).await?;
        hint(self.hints, Wake::Ready);
        Ok(notified)
    }

    /// Waits for a word of new work for at most this long; answers whether one came.
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
