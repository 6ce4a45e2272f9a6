//! The connection to Redis: reconnects without limit, is monitored, and never blocks callers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use milepost_core::port::Wake;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, RedisError, RedisResult};
use tokio::sync::{Notify, watch};

use crate::hints::Hints;
use crate::keys::Keys;
use crate::options::Address;

/// The interval at which an idle Redis is pinged.
const PING_EVERY: Duration = Duration::from_secs(1);
/// The time limit for connecting, as a multiple of the time limit for calls.
const CONNECT_CALLS: u32 = 5;
/// The waits between connection attempts.
const RETRY_WAIT_MIN: Duration = Duration::from_millis(50);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(2);
/// A connection that lasted this long counts as stable.
const GOOD_AFTER: Duration = Duration::from_secs(10);
/// The most consecutive losses of the connection that are logged as warnings, so that an unstable Redis does not fill the log.
const TOLD_MAX: u32 = 3;

/// Why a connection cannot be used any more.
type Why = String;

/// The state shared by all calls.
pub(crate) struct Link {
    address: Address,
    pub(crate) keys: Keys,
    timeout: Duration,
    line: Mutex<Option<CallConnection>>,
    trouble: Mutex<Why>,
    up: watch::Sender<bool>,
    failures: AtomicU64,
    /// Whether Redis has refused a call since the connection was made; only the first refusal is logged as a warning.
    refused: AtomicBool,
    pub(crate) hints: Hints,
}

/// The connection for calls, while it is usable.
#[derive(Clone)]
struct CallConnection {
    connection: MultiplexedConnection,
    /// Notified when a call was not answered.
    broken: Arc<Notify>,
}

/// Both connections of a session: one for calls, one for subscriptions.
struct Session {
    calls: MultiplexedConnection,
    sink: PubSubSink,
    messages: PubSubStream,
}

impl Link {
    pub(crate) fn new(address: Address, keys: Keys, timeout: Duration) -> Self {
        Self {
            address,
            keys,
            timeout,
            line: Mutex::new(None),
            trouble: Mutex::default(),
            up: watch::Sender::new(false),
            failures: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            hints: Hints::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn place(&self) -> &str {
        &self.address.place
    }

    /// Returns why the last connection failed.
    pub(crate) fn trouble(&self) -> Why {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until Redis answers.
    pub(crate) async fn until_up(&self) {
        let _ = self.up.subscribe().wait_for(|up| *up).await;
    }

    /// Calls Redis; `None` if it is unavailable, refuses the call or does not answer in time.
    pub(crate) async fn call<T, F>(
        &self,
        what: &'static str,
        ask: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Option<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let CallConnection { connection, broken } = self.lock().clone()?;
        let error = match tokio::time::timeout(self.timeout, ask(connection)).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        match error {
            Some(error) if is_refusal(&error) => self.tell_refusal(what, &error),
            _ => {
                // No other call should wait for this connection. It may already have been replaced.
                self.lock().take_if(|line| Arc::ptr_eq(&line.broken, &broken));
                broken.notify_one();
            }
        }
        None
    }

    fn tell_refusal(&self, what: &'static str, error: &RedisError) {
        let place = self.address.place.as_ref();
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        if self.refused.swap(true, Ordering::Relaxed) {
            tracing::debug!(place, what, %error, "Redis rejected a call");
        } else {
            tracing::warn!(place, what, %error, "Redis rejected a call; continuing without Redis");
        }
    }

    /// Keeps the connection for as long as this future is polled.
    pub(crate) async fn keep(&self) {
        let place = self.address.place.as_ref();
        // The first failure also counts as a loss, so that a Redis that was never available is reported.
        let (mut changes, mut wait, mut told) = (0, RETRY_WAIT_MIN, false);
        loop {
            let (why, lasted) = self.serve_once(&mut told).await;
            self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&why);
            if lasted >= GOOD_AFTER {
                changes = 0;
            }
            if !lasted.is_zero() {
                wait = RETRY_WAIT_MIN;
            }
            if (lasted > Duration::ZERO || changes == 0) && changes < TOLD_MAX {
                tracing::warn!(
                    place,
                    why,
                    "Redis is unavailable; continuing without it until it is available"
                );
                changes += 1;
                told = true;
            } else {
                tracing::debug!(place, why, "Redis is unavailable");
            }
            tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
            wait = (wait * 2).min(RETRY_WAIT_MAX);
        }
    }

    /// Connects and serves until the connection breaks; returns why it did, and how long it lasted. `told`: the loss of Redis was logged.
    async fn serve_once(&self, told: &mut bool) -> (Why, Duration) {
        let session = match self.connect().await {
            Ok(session) => session,
            Err(why) => return (why, Duration::ZERO),
        };
        let began = Instant::now();
        if std::mem::take(told) {
            tracing::info!(place = self.address.place.as_ref(), "Redis is available again");
        }
        let broken = Arc::new(Notify::new());
        self.set(Some(CallConnection { connection: session.calls.clone(), broken: broken.clone() }));
        let why = self.serve(session, &broken).await;
        self.set(None);
        (why, began.elapsed())
    }

    /// Connects, and checks that Redis answers within the time limit of calls.
    async fn connect(&self) -> Result<Session, Why> {
        let within = self.timeout * CONNECT_CALLS;
        let connecting = async {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(within))
                .set_response_timeout(Some(self.timeout));
            let calls = self.address.client.get_multiplexed_async_connection_with_config(&config).await?;
            let (mut sink, messages) = self.address.client.get_async_pubsub().await?.split();
            sink.subscribe(&[self.keys.ready_channel(), self.keys.stop_channel()]).await?;
            Ok::<_, RedisError>(Session { calls, sink, messages })
        };
        let mut session = match tokio::time::timeout(within, connecting).await {
            Ok(connected) => connected.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("no connection within {within:?}")),
        };
        self.ping(&mut session).await?;
        Ok(session)
    }

    async fn ping(&self, session: &mut Session) -> Result<(), Why> {
        let Session { calls, sink, .. } = session;
        let both = async {
            let ping = redis::cmd("PING");
            tokio::try_join!(ping.query_async::<()>(calls), sink.ping::<redis::Value>()).map(drop)
        };
        match tokio::time::timeout(self.timeout, both).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if is_refusal(&error) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.timeout)),
        }
    }

    /// Forwards messages until the connection cannot be used any more.
    async fn serve(&self, mut session: Session, broken: &Notify) -> Why {
        let ready = self.keys.ready_channel();
        loop {
            tokio::select! {
                message = session.messages.next() => match message {
                    Some(message) if message.get_channel_name() == ready => self.hints.tell(Wake::Ready),
                    Some(_) => self.hints.tell(Wake::Stop),
                    None => return "the connection broke".to_owned(),
                },
                () = broken.notified() => return format!("no answer within {:?}", self.timeout),
                () = tokio::time::sleep(PING_EVERY) => if let Err(why) = self.ping(&mut session).await {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    return why;
                }
            }
        }
    }

    fn set(&self, line: Option<CallConnection>) {
        let up = line.is_some();
        *self.lock() = line;
        self.refused.store(false, Ordering::Relaxed);
        if up {
            // Messages may have been missed while disconnected.
            self.hints.tell(Wake::Stop);
            self.hints.tell(Wake::Ready);
        }
        self.up.send_replace(up);
    }

    fn lock(&self) -> MutexGuard<'_, Option<CallConnection>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether Redis is available and answered, but refused the call.
fn is_refusal(error: &RedisError) -> bool {
    !(error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error())
}
