//! Announcements of new jobs in Redis, as a client of a store behind a transaction pooler makes them.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

/// The channel on which workers listen (docs/REDIS.md).
const READY: &str = "milepost:ready";
/// The time limit of a call.
const CALL_MAX: Duration = Duration::from_millis(200);
/// The pause after a failed call.
const PAUSE: Duration = Duration::from_millis(500);

/// Announces jobs. Clones share the connection; no caller waits for it.
#[derive(Clone, Debug)]
pub struct Hints(UnboundedSender<()>);

impl Hints {
    /// Starts announcing jobs in the Redis at this URL.
    #[must_use]
    pub fn start(url: String) -> Self {
        let (sender, announced) = unbounded_channel();
        tokio::spawn(announce(url, announced));
        Self(sender)
    }

    /// Announces that a job is ready.
    pub fn announce(&self) {
        // The task ends only with the program.
        let _ = self.0.send(());
    }
}

async fn announce(url: String, mut announced: UnboundedReceiver<()>) {
    let mut connection: Option<MultiplexedConnection> = None;
    let mut next_call = Instant::now();
    while announced.recv().await.is_some() {
        if Instant::now() < next_call {
            continue;
        }
        let publish = async {
            let connected = match &mut connection {
                Some(connected) => connected,
                None => connection
                    .insert(redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?),
            };
            redis::cmd("PUBLISH").arg(READY).arg("ready").exec_async(connected).await
        };
        if !matches!(tokio::time::timeout(CALL_MAX, publish).await, Ok(Ok(()))) {
            connection = None;
            next_call = Instant::now() + PAUSE;
        }
    }
}
