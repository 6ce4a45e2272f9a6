//! Single creates whose keys or groups open transactions hold.
//!
//! Of the jobs that need the same, one is tried now and then. The others wait for its outcome, so that many requests for one held key need no more
//! transactions than one, and do not delay the requests for other keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::{Waiting, held, in_parts, store_unless_held};

/// Maximum number of concurrent transactions with a single job.
const SINGLE_MAX: usize = 4;
/// The shortest and the longest pause before a held job is tried again.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Maximum number of jobs that wait for the same; the newest are refused. Each is a request that keeps one of the server's 1,000 connections.
const WAITING_MAX: usize = 100;

/// What a job needs that an open transaction can hold: its key, or its group if it has no key, and in any case the tables.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Need {
    Key { kind: String, key: String },
    Group(String),
    Tables,
}

impl Need {
    fn of(job: &NewJob) -> Self {
        match (&job.key, &job.group) {
            (Some(key), _) => Self::Key { kind: job.kind.clone(), key: key.clone() },
            (None, Some(group)) => Self::Group(group.clone()),
            (None, None) => Self::Tables,
        }
    }
}

/// Stores jobs, and keeps those that are held.
pub(super) struct HeldJobs {
    store: Arc<dyn Store>,
    /// The jobs that wait for the outcome of another one, by what they need. A need without such jobs is held, too.
    waiting: Mutex<HashMap<Need, Vec<Waiting>>>,
    singles: Semaphore,
}

impl HeldJobs {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, waiting: Mutex::default(), singles: Semaphore::new(SINGLE_MAX) }
    }

    /// Stores jobs in as few transactions as possible and answers each caller. The held ones are stored later: this does not wait for them.
    pub(super) fn store(self: &Arc<Self>, gathered: Vec<Waiting>) -> BoxFuture<'_, ()> {
        async move {
            for part in in_parts(self.keep_held(gathered)) {
                let store = self.store.acting_as(part.actor);
                let (plain, mut left): (Vec<_>, Vec<_>) = store_unless_held(store.as_ref(), part.waiting)
                    .await
                    .into_iter()
                    .partition(|waiting| Need::of(&waiting.job) == Need::Tables);
                // Not held, if the others were.
                left.extend(store_unless_held(store.as_ref(), plain).await);
                self.store_by_need(left);
            }
        }
        .boxed()
    }

    /// Keeps those jobs that need what is known to be held, and returns the others.
    fn keep_held(&self, gathered: Vec<Waiting>) -> Vec<Waiting> {
        let mut held = self.lock();
        if held.is_empty() {
            return gathered;
        }
        let mut others = Vec::with_capacity(gathered.len());
        for waiting in gathered {
            match held.get_mut(&Need::of(&waiting.job)) {
                Some(same) => same.push(waiting),
                None => others.push(waiting),
            }
        }
        others
    }

    /// Tries one job of those that need the same. The others wait for its outcome. Does not wait for it.
    fn store_by_need(self: &Arc<Self>, jobs: Vec<Waiting>) {
        let mut held = self.lock();
        for waiting in jobs {
            match held.entry(Need::of(&waiting.job)) {
                Entry::Occupied(mut same) => same.get_mut().push(waiting),
                Entry::Vacant(new) => {
                    tokio::spawn(Arc::clone(self).try_for_all(new.key().clone(), waiting));
                    new.insert(Vec::new());
                }
            }
        }
    }

    /// Tries one job until it is not held any more, then stores the others that need the same.
    async fn try_for_all(self: Arc<Self>, need: Need, mut first: Waiting) {
        let _panics = ForgetOnPanic { jobs: &self, need: &need };
        let mut pause = PAUSE_MIN;
        while let Some(held) = self.try_alone(first).await {
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            let Some(next) = self.refuse_some(&need, held) else { return };
            first = next;
        }
        let others = self.lock().remove(&need).unwrap_or_default();
        self.store(others).await;
    }

    /// Refuses the jobs that have waited too long, and those that are too many, and forgets those whose callers have left. Returns the next one
    /// to try: `first`, if it still waits. Without any, the need is forgotten.
    fn refuse_some(&self, need: &Need, first: Waiting) -> Option<Waiting> {
        let now = Instant::now();
        let mut all = self.lock();
        let same = std::mem::take(all.get_mut(need)?);
        let (mut left, mut refused): (Vec<Waiting>, Vec<Waiting>) = std::iter::once(first)
            .chain(same)
            .filter(|waiting| !waiting.caller.answer.is_closed())
            .partition(|waiting| waiting.caller.until > now);
        refused.extend(left.drain(left.len().min(WAITING_MAX)..));
        refused.into_iter().for_each(|waiting| waiting.caller.tell(Err(held())));
        if left.is_empty() {
            all.remove(need);
            return None;
        }
        let next = left.remove(0);
        all.insert(need.clone(), left);
        Some(next)
    }

    /// Tries to store a job and answers its caller. Returns it if it is held.
    async fn try_alone(&self, waiting: Waiting) -> Option<Waiting> {
        let _permit = self.singles.acquire().await.ok()?;
        let store = self.store.acting_as(waiting.actor.clone());
        store_unless_held(store.as_ref(), vec![waiting]).await.pop()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Need, Vec<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a need if the task that tries its job panics: its callers are answered with an error then, and later jobs are tried again.
struct ForgetOnPanic<'a> {
    jobs: &'a HeldJobs,
    need: &'a Need,
}

impl Drop for ForgetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.jobs.lock().remove(self.need);
        }
    }
}
