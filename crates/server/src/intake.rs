//! Gathers the creates of many callers into few transactions.
//!
//! While a transaction is under way, jobs of other requests wait here; the next one takes them all. Each caller gets its answer
//! after the commit of its job, and a job that the store refuses is refused alone. Only jobs of one actor share a transaction.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::audit::Actor;
use milepost_core::error::StoreError;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::Store;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::problem::Problem;

/// How many jobs share a transaction at most.
const JOBS_MAX: usize = 500;
/// How many bytes of payload share a transaction at most, unless a job alone has more.
const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many transactions are under way at once.
const TRANSACTIONS_MAX: u32 = 2;
/// How long a transaction may take before the next one begins beside it.
const PATIENCE: Duration = Duration::from_millis(5);
/// How many jobs may wait for one.
const WAITING_MAX: usize = 10_000;

/// One that waits for its job's commit.
struct Waiting {
    job: NewJob,
    actor: Actor,
    answer: oneshot::Sender<Result<Enqueued, Problem>>,
}

/// Where single creates go. Ends with the last of its clones.
#[derive(Clone)]
pub(crate) struct Intake {
    sender: mpsc::Sender<Waiting>,
}

impl Intake {
    /// Starts the task that gathers.
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(gather(store, receiver));
        Self { sender }
    }

    /// Stores the job for this actor; answers when it is durable, or why it is not.
    pub(crate) async fn create(&self, actor: Actor, job: NewJob) -> Result<Enqueued, Problem> {
        let (answer, created) = oneshot::channel();
        self.sender.send(Waiting { job, actor, answer }).await.map_err(|_| closing())?;
        created.await.map_err(|_| closing())?
    }
}

fn closing() -> Problem {
    Problem::new(
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "shutting_down",
        "the server shuts down; whether the job was stored is not known: ask again with the same key",
    )
}

async fn gather(store: Arc<dyn Store>, mut receiver: mpsc::Receiver<Waiting>) {
    let transactions = Arc::new(Semaphore::new(TRANSACTIONS_MAX as usize));
    // First a turn, then what has come in until then.
    while let Ok(turn) = Arc::clone(&transactions).acquire_owned().await {
        let mut gathered = Vec::new();
        if receiver.recv_many(&mut gathered, JOBS_MAX).await == 0 {
            return;
        }
        // While another one is under way more comes in; one that takes long is not waited for.
        let _ = timeout(PATIENCE, transactions.acquire_many(TRANSACTIONS_MAX - 1)).await;
        take_along(&mut receiver, &mut gathered).await;
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for part in in_parts(gathered) {
                store_all(store.acting_as(part.actor).as_ref(), part.waiting).await;
            }
            drop(turn);
        });
    }
}

/// Takes those, too, whose requests have come and are not read yet: a transaction costs more than a job in it. Waits for nobody.
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

/// What shares a transaction.
struct Part {
    actor: Actor,
    waiting: Vec<Waiting>,
    payload_bytes: usize,
}

/// What each actor asks for, in its order: a transaction is one actor's, so that its row of audit says whose the jobs are, and no larger
/// than stores take.
fn in_parts(gathered: Vec<Waiting>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for waiting in gathered {
        let bytes = waiting.job.payload.get().len();
        let last = parts.iter_mut().rfind(|part| part.actor.who() == waiting.actor.who());
        match last.filter(|part| part.payload_bytes + bytes <= PAYLOAD_BYTES_MAX) {
            Some(part) => {
                part.payload_bytes += bytes;
                part.waiting.push(waiting);
            }
            None => {
                let actor = waiting.actor.clone();
                parts.push(Part { actor, waiting: vec![waiting], payload_bytes: bytes });
            }
        }
    }
    parts
}

/// Stores them together and answers each.
async fn store_all(store: &dyn Store, gathered: Vec<Waiting>) {
    let (jobs, answers): (Vec<_>, Vec<_>) =
        gathered.into_iter().map(|waiting| (waiting.job, waiting.answer)).unzip();
    match store_each(store, &jobs).await {
        Ok(stored) => {
            for (answer, stored) in answers.into_iter().zip(stored) {
                // Who stopped waiting does not need it.
                let _ = answer.send(stored);
            }
        }
        Err(error) => refuse_all(answers, error),
    }
}

/// Stores those that the store takes, and says why it does not take the others; in their order. In one transaction if it takes all; else
/// in halves, since a database does not always say which one it means.
pub(crate) async fn store_each(
    store: &dyn Store,
    jobs: &[NewJob],
) -> Result<Vec<Result<Enqueued, Problem>>, StoreError> {
    let mut answers = Vec::with_capacity(jobs.len());
    let mut left = vec![jobs];
    while let Some(some) = left.pop() {
        match store.enqueue_many(some).await {
            Ok(stored) => answers.extend(stored.into_iter().map(Ok)),
            Err(StoreError::Invalid { .. }) if some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                left.extend([second, first]);
            }
            Err(StoreError::Invalid { invalid, .. }) => {
                answers.push(Err(Problem::unprocessable("invalid_job", invalid.to_string())));
            }
            Err(error) if answers.is_empty() => return Err(error),
            // Others stand: each is told what became of it. No more is asked of a store that fails.
            Err(error) => {
                let problem = Problem::from(error);
                answers.resize_with(jobs.len(), || Err(problem.clone()));
                break;
            }
        }
    }
    Ok(answers)
}

fn refuse_all(answers: Vec<oneshot::Sender<Result<Enqueued, Problem>>>, error: StoreError) {
    let problem = Problem::from(error);
    for answer in answers {
        let _ = answer.send(Err(problem.clone()));
    }
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
            // With its quotes.
            let job = NewJob::new(place.to_string(), &"x".repeat(bytes - 2)).unwrap();
            Waiting { job, actor: Actor::new(who).unwrap(), answer: oneshot::channel().0 }
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
