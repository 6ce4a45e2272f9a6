//! Consumer that processes events through its inbox.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::error::Cause;
use milepost_core::event::{Aggregate, Event};
use milepost_core::retry::RetryPolicy;
use milepost_relay::consumer::{Handler, Malformed, Runner, RunnerOptions};
use milepost_testkit::inbox::{Desk, drain, take_in};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::consumers::broker::BILLING;

/// Processes events and fails often: before the commit, and after it like a process that stops before the acknowledgement.
pub(crate) struct Takes {
    pub(crate) desk: Desk,
    pub(crate) fails: AtomicBool,
    at_once: Mutex<HashSet<Aggregate>>,
    pub(crate) malformed: Mutex<Vec<Malformed>>,
    pub(crate) began: Notify,
    pub(crate) held: AtomicBool,
    pub(crate) go_on: Notify,
}

impl Takes {
    pub(crate) async fn new(fails: bool) -> Arc<Self> {
        Self::at(Desk::temporary().await, fails)
    }

    /// Returns another process of the same consumer.
    #[cfg(feature = "kafka")]
    pub(crate) fn beside(other: &Self) -> Arc<Self> {
        Self::at(other.desk.clone(), other.fails.load(Ordering::SeqCst))
    }

    fn at(desk: Desk, fails: bool) -> Arc<Self> {
        Arc::new(Self {
            desk,
            fails: AtomicBool::new(fails),
            at_once: Mutex::default(),
            malformed: Mutex::default(),
            began: Notify::new(),
            held: AtomicBool::new(false),
            go_on: Notify::new(),
        })
    }

    pub(crate) async fn effects(&self, order: &str) -> Vec<i64> {
        self.desk.effects_of(BILLING, &Aggregate::new("order", order)).await
    }
}

#[async_trait]
impl Handler for Takes {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        assert!(
            self.at_once.lock().unwrap().insert(event.aggregate.clone()),
            "two events of one aggregate at the same time"
        );
        // Read before the notification: the test that waits for it may clear the flag.
        let held = self.held.load(Ordering::SeqCst);
        self.began.notify_one();
        if held {
            self.go_on.notified().await;
        }
        let mut tx = self.desk.begin().await;
        take_in(tx.as_mut(), BILLING, event).await;
        let fate = if self.fails.load(Ordering::SeqCst) { fastrand::u8(0..6) } else { 6 };
        match fate {
            0 => tx.roll_back().await,
            1 => tx.die().await,
            _ => tx.commit().await,
        }
        self.at_once.lock().unwrap().remove(&event.aggregate);
        match fate {
            0..=2 => Err("it fails".into()),
            3 if event.sequence % 2 == 0 => panic!("the handler panics after the commit"),
            _ => Ok(()),
        }
    }

    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        let mut tx = self.desk.begin().await;
        drain(tx.as_mut(), BILLING, aggregate).await;
        tx.commit().await;
        Ok(())
    }

    async fn malformed(&self, message: &Malformed) -> Result<(), Cause> {
        self.malformed.lock().unwrap().push(message.clone());
        Ok(())
    }
}

/// A running consumer.
pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    ran: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(runner: Runner, takes: &Takes) -> Self {
        let backoff = RetryPolicy::fixed(Duration::from_millis(20));
        let runner = runner.options(RunnerOptions { in_flight_max: 20, backoff });
        let runner = runner.inbox(takes.desk.store.clone(), BILLING);
        let stop = CancellationToken::new();
        Self { ran: tokio::spawn(runner.run(stop.clone())), stop }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.ran.await.unwrap();
    }
}
