//! Group commit of single creates: jobs of many requests share few transactions.
//!
//! Jobs of other requests wait while a transaction is running; the next transaction stores all of them. Each caller is answered
//! after its job has been committed. A job that the store refuses does not affect the others. Only jobs of the same actor, with the same
//! reason, share a transaction.
//!
//! A transaction of another program can hold what a job needs, such as its key, for as long as it is open. A shared transaction does not wait for
//! it: its jobs are then stored one by one, and those that are still held wait [apart](held_jobs).

use std::sync::Arc;
use std::time::Duration;

use milepost_core::audit::Actor;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::Store;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use self::held_jobs::HeldJobs;
pub(crate) use self::store_each::store_each_in_time;
use self::store_each::{WhenHeld, store_each};
use crate::problem::{Code, Problem};
use crate::scoped::LimitedToken;

mod held_jobs;
mod store_each;

/// Maximum number of jobs in one transaction.
const JOBS_MAX: usize = 500;
/// Maximum payload bytes in one transaction, unless a single job has more.
const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of concurrent transactions.
const TRANSACTIONS_MAX: u32 = 2;
/// How long a transaction may run before the next one starts beside it.
const PATIENCE: Duration = Duration::from_millis(5);
/// Maximum number of jobs that wait for a transaction.
const WAITING_MAX: usize = 10_000;
/// How long a job is tried while an open transaction holds what it needs.
const HELD_MAX: Duration = Duration::from_secs(30);

/// A job that waits for its commit.
struct Waiting {
    job: NewJob,
    actor: Actor,
    caller: Caller,
}

/// Where a caller waits for its job.
struct Caller {
    answer: oneshot::Sender<Result<Enqueued, Problem>>,
    /// Until when the job is tried while it is held.
    until: Instant,
}

impl Caller {
    /// The receiver is gone if the caller has stopped waiting.
    fn tell(self, stored: Result<Enqueued, Problem>) {
        let _ = self.answer.send(stored);
    }
}

/// The queue of single creates. Its task ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Intake {
    sender: mpsc::Sender<Waiting>,
    /// The token whose jobs these are, if it is limited.
    limited: Option<Arc<LimitedToken>>,
}

impl Intake {
    /// Starts the task that gathers jobs.
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(gather(store, receiver));
        Self { sender, limited: None }
    }

    /// Returns the intake for jobs of a limited token.
    pub(crate) fn limited_to(&self, token: Arc<LimitedToken>) -> Self {
        Self { limited: Some(token), ..self.clone() }
    }

    /// Stores the job for this actor. Returns when the job is durable or was refused.
    pub(crate) async fn create(&self, actor: Actor, job: NewJob) -> Result<Enqueued, Problem> {
        if let Some(token) = &self.limited {
            token.check_jobs([(job.queue.as_str(), job.kind.as_str())])?;
        }
        let (answer, created) = oneshot::channel();
        let until = Instant::now() + HELD_MAX;
        self.sender
            .send(Waiting { job, actor, caller: Caller { answer, until } })
            .await
            .map_err(|_| closing())?;
        created.await.map_err(|_| closing())?
    }
}

fn closing() -> Problem {
    Problem::new(
        Code::ShuttingDown,
        "the server is shutting down, and it is unknown whether the job was stored; repeat the request with the same key",
    )
}

pub(crate) fn held() -> Problem {
    Problem::new(
        Code::Held,
        "an open transaction holds the key or the group of the job; nothing was stored; end that transaction, then repeat the request with the same key",
    )
    .retry_after_s(1)
}

async fn gather(store: Arc<dyn Store>, mut receiver: mpsc::Receiver<Waiting>) {
    let transactions = Arc::new(Semaphore::new(TRANSACTIONS_MAX as usize));
    let held = Arc::new(HeldJobs::new(store));
    // Acquire a permit first, then take all jobs that have arrived until then.
    while let Ok(turn) = Arc::clone(&transactions).acquire_owned().await {
        let mut gathered = Vec::new();
        if receiver.recv_many(&mut gathered, JOBS_MAX).await == 0 {
            return;
        }
        // Wait for the running transaction, so that more jobs can arrive, but not longer than `PATIENCE`.
        let _ = timeout(PATIENCE, transactions.acquire_many(TRANSACTIONS_MAX - 1)).await;
        take_along(&mut receiver, &mut gathered).await;
        let held = Arc::clone(&held);
        tokio::spawn(async move {
            held.store(gathered).await;
            drop(turn);
        });
    }
}

/// Also takes jobs of requests that have arrived but are not read yet: a transaction costs more than a job in it. Does not wait
/// for new requests.
async fn take_along(receiver: &mut mpsc::Receiver<Waiting>, gathered: &mut Vec<Waiting>) {
    let mut before = 0;
    while gathered.len() > before && gathered.len() < JOBS_MAX {
        before = gathered.len();
        tokio::task::yield_now().await;
        while gathered.len() < JOBS_MAX
            && let Ok(waiting) = receiver.try_recv()
        {
            gathered.push(waiting);
        }
    }
}

/// The jobs of one transaction.
struct Transaction {
    actor: Actor,
    has_rules: bool,
    waiting: Vec<Waiting>,
    payload_bytes: usize,
}

/// Splits jobs into transactions, keeping each actor's order. A transaction has one actor, so that its audit row names the
/// creator of the jobs, and is no larger than the limits allow. Jobs with a rule for duplicates take longer and are separate.
fn in_parts(gathered: Vec<Waiting>) -> Vec<Transaction> {
    let mut parts: Vec<Transaction> = Vec::new();
    for waiting in gathered {
        let bytes = waiting.job.payload.get().len();
        let has_rules = waiting.job.on_duplicate.is_some();
        let last = parts.iter_mut().rfind(|part| part.actor == waiting.actor && part.has_rules == has_rules);
        match last.filter(|part| part.payload_bytes + bytes <= PAYLOAD_BYTES_MAX) {
            Some(part) => {
                part.payload_bytes += bytes;
                part.waiting.push(waiting);
            }
            None => {
                let actor = waiting.actor.clone();
                parts.push(Transaction { actor, has_rules, waiting: vec![waiting], payload_bytes: bytes });
            }
        }
    }
    parts
}

/// Stores jobs of one actor in one transaction and answers each caller, except those whose jobs are held, which it returns.
async fn store_unless_held(store: &dyn Store, waiting: Vec<Waiting>) -> Vec<Waiting> {
    let (jobs, callers): (Vec<_>, Vec<_>) =
        waiting.into_iter().map(|Waiting { job, actor, caller }| (job, (actor, caller))).unzip();
    let stored = match store_each(store, &jobs, WhenHeld::LeaveAll).await {
        Ok(stored) => stored,
        Err(error) => {
            let problem = Problem::from(error);
            callers.into_iter().for_each(|(_, caller)| caller.tell(Err(problem.clone())));
            return Vec::new();
        }
    };
    let mut held = Vec::new();
    for ((job, (actor, caller)), stored) in jobs.into_iter().zip(callers).zip(stored) {
        match stored {
            Some(stored) => caller.tell(stored),
            None => held.push(Waiting { job, actor, caller }),
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_of_one_actor_in_its_order_and_not_too_large() {
        const MIB: usize = 1024 * 1024;
        let asked = [
            ("ada", 10),
            ("bob", 10),
            ("ada", 3 * MIB),
            ("ada", 2 * MIB),
            ("ada", 10),
            ("bob", 5 * MIB),
            ("bob", 10),
        ];
        let waiting = asked.iter().enumerate().map(|(place, &(who, bytes))| {
            // The length includes the two quotes.
            let job = NewJob::new(place.to_string(), &"x".repeat(bytes - 2)).unwrap();
            let caller = Caller { answer: oneshot::channel().0, until: Instant::now() };
            Waiting { job, actor: Actor::new(who).unwrap(), caller }
        });
        let parts = in_parts(waiting.collect());
        let told: Vec<(&str, usize, Vec<&str>)> = parts
            .iter()
            .map(|part| {
                let kinds = part.waiting.iter().map(|waiting| waiting.job.kind.as_str()).collect();
                (part.actor.who(), part.payload_bytes, kinds)
            })
            .collect();
        let expected = [
            ("ada", 3 * MIB + 10, vec!["0", "2"]),
            ("bob", 10, vec!["1"]),
            ("ada", 2 * MIB + 10, vec!["3", "4"]),
            ("bob", 5 * MIB, vec!["5"]),
            ("bob", 10, vec!["6"]),
        ];
        assert_eq!(told, expected);
    }
}
