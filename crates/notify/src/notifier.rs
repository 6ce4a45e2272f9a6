//! The loop that records alerts and sends messages about them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use milepost_core::alert::{
    ActiveAlert, IncidentTimes, NoticeOutcome, NoticeRules, NoticeTimes, TEXT_BYTES_MAX, retry_wait,
};
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::text::shorten;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::channel::Channel;
use crate::fault::SendError;
use crate::message::Message;

/// How often alerts are searched.
const EVERY: Duration = Duration::from_secs(15);
/// The pause is at least this multiple of the time that looking for alerts takes, so that a large store is not kept busy.
const TIMES: u32 = 20;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// Returns the alerts of the store, as the server's overview shows them.
pub type Observe = Box<dyn Fn() -> BoxFuture<'static, Result<Vec<ActiveAlert>, StoreError>> + Send + Sync>;

/// A target of alerts.
#[derive(Debug)]
pub struct Target {
    /// The alerts of which it is notified.
    pub rules: NoticeRules,
    /// How messages reach it.
    pub channel: Channel,
    /// The address of the console, for links.
    pub console: Option<String>,
}

/// Records alerts, and sends messages about them to targets, until it is stopped. Any number of servers may run one on the same store.
pub struct Notifier {
    store: Arc<dyn Store>,
    targets: Vec<Target>,
    observe: Observe,
    every: Duration,
    incidents: IncidentTimes,
    messages: NoticeTimes,
}

impl Notifier {
    /// Creates a notifier.
    pub fn new(store: Arc<dyn Store>, targets: Vec<Target>, observe: Observe) -> Self {
        Self {
            store,
            targets,
            observe,
            every: EVERY,
            incidents: IncidentTimes::default(),
            messages: NoticeTimes::default(),
        }
    }

    /// Sets how often alerts are looked for, and the times of incidents and messages.
    #[must_use]
    pub fn timed(self, every: Duration, incidents: IncidentTimes, messages: NoticeTimes) -> Self {
        Self { every, incidents, messages, ..self }
    }

    /// Runs until it is stopped. A message that is being sent is completed.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            let begun = Instant::now();
            let pause = match self.record().await {
                Ok(()) => {
                    let pause = (begun.elapsed() * TIMES).clamp(self.every, PAUSE_MAX.max(self.every));
                    join_all(self.targets.iter().map(|target| self.tell(target))).await;
                    pause
                }
                // Nothing is sent: without an observation, incidents would seem to have ended.
                Err(error) => {
                    tracing::warn!(error = error.chain(), "alerts cannot be recorded now");
                    self.every
                }
            };
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn record(&self) -> Result<(), StoreError> {
        let alerts = (self.observe)().await?;
        self.store.observe_alerts(&alerts, &self.incidents).await
    }

    /// Sends the due notices to a target, if no other server does.
    async fn tell(&self, target: &Target) {
        let name = &target.rules.target;
        let notified = async {
            let Some(claim) = self.store.claim_notices(&target.rules, &self.messages).await? else {
                return Ok(());
            };
            let message = Message::new(name, &claim.notices, target.console.as_deref(), Timestamp::now());
            let outcome = match target.channel.send(&message).await {
                Ok(()) => NoticeOutcome::Delivered,
                Err(SendError { why, retry_after }) => {
                    tracing::warn!(target = name, why, "a message about alerts was not delivered");
                    let wait =
                        retry_wait(claim.failures).max(retry_after.unwrap_or_default()).min(PAUSE_MAX * 2);
                    NoticeOutcome::Failed { why: shorten(why, TEXT_BYTES_MAX), wait }
                }
            };
            // If this fails, the message is sent again after the lease.
            self.store.end_notices(&claim, &outcome).await.map(drop)
        };
        if let Err(error) = notified.await {
            tracing::warn!(
                target = name,
                error = error.chain(),
                "messages about alerts cannot be claimed now"
            );
        }
    }
}
