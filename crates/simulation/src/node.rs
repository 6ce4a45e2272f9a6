//! A simulated process: what happens to its calls of the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fastrand::Rng;
use milepost_chaos::witness::Witness;
use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_testkit::faulty::interceptor::Interceptor;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::plan::Fault;
use crate::trace::Trace;

/// The longest delay of a request, and of an answer, in microseconds.
const DELAY_US_MAX: u64 = 5_000;
/// The call that renews a lease and tells of stop requests.
const HEARTBEAT: &str = "heartbeat";
/// The delay of slow calls.
const SLOW: Duration = Duration::from_millis(500);

/// The state of one process, from its start to its end.
pub struct Node {
    /// Its witness.
    pub witness: Arc<Witness>,
    index: usize,
    random: Mutex<Rng>,
    is_dead: AtomicBool,
    /// The number of faults that freeze it.
    frozen: watch::Sender<u32>,
    faults: Mutex<Faults>,
    /// The number of calls with a fault.
    with_fault: AtomicU32,
    /// How often a fault that was aimed at a call happened, by the call and the index in [`Fault::KINDS`].
    aimed: Mutex<BTreeMap<(String, usize), u32>>,
    trace: Trace,
    /// Receives the process and the time for which it is down, when it dies at a call.
    crashed: mpsc::UnboundedSender<(usize, u64)>,
}

/// The faults of the calls.
#[derive(Default)]
struct Faults {
    lose_until: Option<Instant>,
    fail_until: Option<Instant>,
    slow_until: Option<Instant>,
    /// Calls whose next answer is lost.
    lose: Vec<String>,
    /// Calls at which the process dies: whether they are executed, and how long it is down.
    die_at: Vec<(String, bool, u64)>,
    /// Calls from which on its heartbeats fail, and for how long in milliseconds.
    fail_heartbeats_at: Vec<(String, u64)>,
    fail_heartbeats_until: Option<Instant>,
}

impl Node {
    /// Starts a process.
    #[must_use]
    pub fn new(
        index: usize,
        witness: Arc<Witness>,
        seed: u64,
        trace: Trace,
        crashed: mpsc::UnboundedSender<(usize, u64)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            witness,
            index,
            random: Mutex::new(Rng::with_seed(seed)),
            is_dead: AtomicBool::new(false),
            frozen: watch::Sender::new(0),
            faults: Mutex::default(),
            with_fault: AtomicU32::new(0),
            aimed: Mutex::default(),
            trace,
            crashed,
        })
    }

    /// Kills the process: its calls never return, and the witness no longer listens to it.
    pub fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.witness.die();
    }

    /// Freezes the process, until it was thawed as often.
    pub fn freeze(&self) {
        self.frozen.send_modify(|frozen| *frozen += 1);
    }

    /// Lets a frozen process continue.
    pub fn thaw(&self) {
        self.frozen.send_modify(|frozen| *frozen = frozen.saturating_sub(1));
    }

    /// Ends all faults of its calls.
    pub fn heal(&self) {
        *self.faults() = Faults::default();
        self.frozen.send_replace(0);
    }

    /// Plans a fault of its calls.
    pub fn suffer(&self, fault: &Fault) {
        let until = |for_ms: &u64| Some(Instant::now() + Duration::from_millis(*for_ms));
        let mut faults = self.faults();
        match fault {
            Fault::LoseAnswer { call, .. } => faults.lose.push(call.clone()),
            Fault::LoseAnswers { for_ms, .. } => faults.lose_until = until(for_ms),
            Fault::FailCalls { for_ms, .. } => faults.fail_until = until(for_ms),
            Fault::SlowCalls { for_ms, .. } => faults.slow_until = until(for_ms),
            Fault::FailHeartbeats { call, for_ms, .. } => {
                faults.fail_heartbeats_at.push((call.clone(), *for_ms));
            }
            Fault::CrashAt { call, executed, for_ms, .. } => {
                faults.die_at.push((call.clone(), *executed, *for_ms));
            }
            Fault::Crash { .. } | Fault::Freeze { .. } | Fault::SetClock { .. } => {}
        }
    }

    /// Returns the number of calls with a fault.
    pub fn calls_with_fault(&self) -> u32 {
        self.with_fault.load(Ordering::Relaxed)
    }

    /// Returns how often a fault that was aimed at a call happened, by the call and the index in [`Fault::KINDS`].
    pub fn aimed(&self) -> BTreeMap<(String, usize), u32> {
        self.aimed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_aimed(&self, call: &str, kind: usize) {
        let mut aimed = self.aimed.lock().unwrap_or_else(PoisonError::into_inner);
        *aimed.entry((call.to_owned(), kind)).or_default() += 1;
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as a message takes. Never returns if the process is dead.
    async fn travel(&self) {
        let delay_us = self.random.lock().unwrap_or_else(PoisonError::into_inner).u64(..DELAY_US_MAX);
        let is_slow = self.faults().slow_until.is_some_and(|until| Instant::now() < until);
        sleep(Duration::from_micros(delay_us) + if is_slow { SLOW } else { Duration::ZERO }).await;
        let frozen = self.frozen.subscribe().wait_for(|frozen| *frozen == 0).await.map(drop);
        if frozen.is_err() || self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Dies at this call, if that is planned.
    async fn die_at(&self, call: &str, was_executed: bool) {
        let planned = {
            let mut faults = self.faults();
            let at =
                faults.die_at.iter().position(|(at, executed, _)| at == call && *executed == was_executed);
            at.map(|at| faults.die_at.swap_remove(at))
        };
        if let Some((_, _, for_ms)) = planned {
            self.with_fault.fetch_add(1, Ordering::Relaxed);
            self.count_aimed(call, Fault::CRASH_AT);
            self.die();
            let _ = self.crashed.send((self.index, for_ms));
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether this call fails.
    fn fails(&self, call: &str) -> bool {
        let (mut faults, now) = (self.faults(), Instant::now());
        if let Some(at) = faults.fail_heartbeats_at.iter().position(|(at, _)| at == call) {
            let (_, for_ms) = faults.fail_heartbeats_at.swap_remove(at);
            faults.fail_heartbeats_until = Some(now + Duration::from_millis(for_ms));
            self.count_aimed(call, Fault::FAIL_HEARTBEATS);
        }
        let heartbeats_until = faults.fail_heartbeats_until.filter(|_| call == HEARTBEAT);
        heartbeats_until.max(faults.fail_until).is_some_and(|until| now < until)
    }

    fn lost<T>(&self, call: &str) -> StoreResult<T> {
        self.with_fault.fetch_add(1, Ordering::Relaxed);
        Err(StoreError::Unavailable { place: call.to_owned(), cause: "simulated fault".into() })
    }
}

#[async_trait]
impl Interceptor for Node {
    async fn before(&self, call: &'static str) -> StoreResult<()> {
        self.travel().await;
        self.die_at(call, false).await;
        self.trace.note(self.index, call);
        if self.fails(call) { self.lost(call) } else { Ok(()) }
    }

    async fn after(&self, call: &'static str) -> StoreResult<()> {
        self.die_at(call, true).await;
        self.travel().await;
        let is_lost = {
            let mut faults = self.faults();
            let aimed =
                faults.lose.iter().position(|lost| lost == call).map(|at| faults.lose.swap_remove(at));
            if aimed.is_some() {
                self.count_aimed(call, Fault::LOSE_ANSWER);
            }
            aimed.is_some() || faults.lose_until.is_some_and(|until| Instant::now() < until)
        };
        if is_lost { self.lost(call) } else { Ok(()) }
    }
}
