//! Wake-ups without a cost on the commit path: the sleep handshake.
//!
//! NOTIFY takes a database-wide lock at commit, so enqueues must not notify as long as anybody is awake. One
//! *waker* in the whole database is elected by a session lock. While there is work it looks every few
//! milliseconds and passes on what it sees. Before it sleeps it takes a second lock exclusively, looks once
//! more, and then waits in LISTEN. An enqueuer tries that second lock shared (`milepost.wake()`): when it gets
//! it, nobody sleeps and nobody can fall asleep before it commits; when it does not, it notifies.
//!
//! Everybody listens, so a notification reaches all processes at once. A waker that is gone gives up its locks
//! with its session; one that hangs is unseated by the others. Until then enqueuers notify, which is slow but
//! loses nothing.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use sqlx::postgres::{PgListener, PgNotification, PgPoolOptions};
use sqlx::{Executor, Row};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connect::WakeMode;
use crate::statement;
use crate::store::PostgresStore;

const CHANNEL: &str = "milepost_wake";
/// How often an awake waker looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What is due within this is not worth falling asleep for: tokens of a high rate come back so often.
const DOZE_BELOW: Duration = Duration::from_millis(25);
/// Looking may take one part in this many of the time, as long as it looks once in [`LOOK_EVERY_MAX`].
const LOOK_SHARE: u32 = 10;
/// How seldom a waker looks to whom every look is dear.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// How often an awake waker tells the other processes, at most.
const PASS_ON_EVERY: Duration = Duration::from_millis(25);
/// How long a sleeping waker trusts that nothing was missed.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// How often the others try to become the waker.
const ELECT_EVERY: Duration = Duration::from_secs(2);
/// A waker speaks at least every [`SLEEP_MAX`]; one silent for so long hangs.
const SILENCE_SECONDS_MAX: f64 = 15.0;
/// How often the waker asks which lanes living workers serve.
const LANES_EVERY: Duration = Duration::from_secs(1);

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

pub(crate) fn subscribe(store: &PostgresStore) -> Box<dyn WakeStream> {
    let (sender, hints) = watch::channel(Hints::default());
    let task = match store.inner.options.wake {
        WakeMode::Poll => None,
        WakeMode::Listen => Some(tokio::spawn(listen_for_ever(store.clone(), sender))),
    };
    Box::new(PostgresWakes { hints, seen: Hints::default(), task })
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

async fn listen_for_ever(store: PostgresStore, hints: watch::Sender<Hints>) {
    let mut failures = 0u32;
    while !hints.is_closed() {
        let began = Instant::now();
        if let Err(error) = Listener::open(&store, &hints).await {
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
struct Listener<'a> {
    store: &'a PostgresStore,
    hints: &'a watch::Sender<Hints>,
    session: PgListener,
    lanes: Lanes,
    /// Whether the last look was at all there is, not only above the floors.
    looked_at_all: bool,
    /// How long it took.
    look_took: Duration,
}

/// Which (queue, kind) pairs living workers serve.
#[derive(Default)]
struct Lanes {
    pairs: Vec<(String, String)>,
    workers: i64,
    /// Whether groups have rates.
    paced: bool,
    asked_at: Option<Instant>,
}

impl<'a> Listener<'a> {
    /// Listens until the connection breaks.
    async fn open(store: &'a PostgresStore, hints: &'a watch::Sender<Hints>) -> Result<(), sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            // This session only notifies: nothing of it has to be durable.
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute("set synchronous_commit = off").await.map(drop) })
            })
            .connect_with(store.inner.connect.clone())
            .await?;
        let mut session = PgListener::connect_with(&pool).await?;
        session.eager_reconnect(false);
        session.listen(CHANNEL).await?;
        let mut listener = Self {
            store,
            hints,
            session,
            lanes: Lanes::default(),
            looked_at_all: false,
            look_took: Duration::ZERO,
        };
        hint(hints, Wake::Ready);
        loop {
            if listener.ask(statement::ELECT_WAKER).await? {
                listener.lead().await?;
            } else {
                listener.follow().await?;
            }
        }
    }

    async fn ask(&mut self, statement: &'static str) -> Result<bool, sqlx::Error> {
        sqlx::query_scalar(statement).fetch_one(&mut self.session).await
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
            .bind(SILENCE_SECONDS_MAX)
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
            let due_in = self.due_in().await?;
            if due_in == Some(Duration::ZERO) {
                hint(self.hints, Wake::Ready);
                if self.lanes.workers > 1 && passed_on.elapsed() >= PASS_ON_EVERY {
                    self.session.execute(statement::PASS_ON).await?;
                    passed_on = Instant::now();
                }
                self.doze((self.look_took * LOOK_SHARE).clamp(LOOK_EVERY, LOOK_EVERY_MAX)).await?;
            } else if due_in.is_none_or(|due_in| due_in >= DOZE_BELOW) && self.ask(statement::SLEEP).await? {
                let notified = self.sleep().await?;
                self.session.execute(statement::RISE).await?;
                if notified {
                    // Whoever enqueues next need not notify, even if nobody here serves what came.
                    self.doze(LOOK_EVERY).await?;
                }
            } else {
                // It is not worth it, or an enqueuer has its transaction open: it will not notify.
                self.doze((self.look_took * LOOK_SHARE).clamp(LOOK_EVERY, LOOK_EVERY_MAX)).await?;
            }
        }
    }

    /// Sleeps until somebody notifies or the next job is due, unless there is work now. Answers whether
    /// somebody notified.
    async fn sleep(&mut self) -> Result<bool, sqlx::Error> {
        let mut due_in = self.due_in().await?.unwrap_or(SLEEP_MAX).min(SLEEP_MAX);
        if !self.looked_at_all {
            // What was committed late lies below the floors, and nobody will notify: look again soon.
            due_in = due_in.min(self.store.inner.floors.bottom_in());
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

    /// How soon a living worker could claim something; zero: now.
    async fn due_in(&mut self) -> Result<Option<Duration>, sqlx::Error> {
        if self.lanes.asked_at.is_none_or(|at| at.elapsed() >= LANES_EVERY) {
            self.refresh_lanes().await?;
        }
        if self.lanes.pairs.is_empty() {
            return Ok(None);
        }
        // First, so that what it releases is seen.
        let paced = if self.lanes.paced { self.store.pace().await? } else { None };
        let (peeked, timed) = self.peek().await?;
        if timed == Some(Duration::ZERO) {
            self.store.pace().await?;
            return Ok(timed);
        }
        Ok([peeked, timed, paced].into_iter().flatten().min())
    }

    /// How soon something can be claimed in one of these lanes, and how soon a job that waits in its group for its
    /// time is due.
    async fn peek(&mut self) -> Result<(Option<Duration>, Option<Duration>), sqlx::Error> {
        let began = Instant::now();
        let pairs: Vec<(&str, &str)> =
            self.lanes.pairs.iter().map(|(q, k)| (q.as_str(), k.as_str())).collect();
        let floors = &self.store.inner.floors;
        let probe = floors.probe(&pairs, 0, false);
        let query = sqlx::query(statement::PEEK)
            .bind(&probe.queues)
            .bind(&probe.kinds)
            .bind(&probe.priorities)
            .bind(&probe.floors);
        let rows = self.store.inner.hot.rows(query).await?;
        self.looked_at_all = probe.from_bottom;
        let (mut soonest, mut timed): (Option<i64>, Option<i64>) = (None, None);
        for row in &rows {
            let lane = usize::try_from(row.try_get::<i64, _>("ord")? - 1).unwrap_or(0);
            let due_in_ms: Option<i64> = row.try_get("due_in_ms")?;
            soonest = soonest.into_iter().chain(row.try_get::<Option<i64>, _>("open_in_ms")?).min();
            let empty_until = if due_in_ms.is_some_and(|ms| ms <= 0) { "ready_at" } else { "at" };
            floors.learn(&probe, lane, row.try_get::<jiff_sqlx::Timestamp, _>(empty_until)?.to_jiff());
        }
        if let Some(last) = rows.last() {
            timed = last.try_get("timed_in_ms")?;
            let took_us: i64 = last.try_get("took_us")?;
            floors.spent(&probe, Duration::from_micros(took_us.unsigned_abs()), 0);
        }
        self.look_took = began.elapsed();
        let within = |ms: Option<i64>| ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        Ok((within(soonest), within(timed)))
    }

    async fn refresh_lanes(&mut self) -> Result<(), sqlx::Error> {
        let rows = self.store.inner.hot.rows(sqlx::query(statement::LANES)).await?;
        self.lanes.pairs = rows
            .iter()
            .map(|row| Ok((row.try_get("queue")?, row.try_get("kind")?)))
            .collect::<Result<_, sqlx::Error>>()?;
        self.lanes.workers = rows.first().map_or(Ok(0), |row| row.try_get("workers"))?;
        self.lanes.paced = rows.first().map_or(Ok(false), |row| row.try_get("paced"))?;
        self.lanes.asked_at = Some(Instant::now());
        Ok(())
    }
}
