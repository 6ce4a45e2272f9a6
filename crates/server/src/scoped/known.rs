//! Cached answers to the question whether an object belongs to a limited token.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::dag::version::Version;
use milepost_core::ident::{BatchId, JobId, WorkerId};

/// The maximum number of cached jobs: as many as one operation on many jobs changes, twice.
const JOBS_MAX: usize = 200_000;
/// The maximum number of cached batches, workers and versions of DAGs.
const OTHERS_MAX: usize = 2_000;
/// How long the answer for a batch is valid: a batch can move to another version.
const BATCH_FRESH: Duration = Duration::from_secs(10);

/// What decides whether a version of a DAG is own. The version itself never changes.
#[derive(Debug)]
pub(super) struct VersionNeeds {
    /// Whether the queues and kinds of all tasks with jobs are own.
    pub(super) jobs_are_own: bool,
    /// The names of the bulk jobs of its tasks.
    pub(super) bulks: Vec<String>,
    /// The names of the DAGs of its tasks.
    pub(super) dags: Vec<String>,
}

/// The cached answers of one token. Each cache is emptied when it is full.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Jobs that are own, or not: neither the queue nor the kind of a job ever changes.
    jobs: Mutex<HashMap<JobId, bool>>,
    workers: Mutex<HashSet<WorkerId>>,
    batches: Mutex<HashMap<BatchId, (Instant, bool)>>,
    versions: Mutex<HashMap<Version, Arc<VersionNeeds>>>,
}

impl Known {
    pub(super) fn job(&self, job: JobId) -> Option<bool> {
        lock(&self.jobs).get(&job).copied()
    }

    pub(super) fn keep_job(&self, job: JobId, is_own: bool) {
        keep(&self.jobs, JOBS_MAX, job, is_own);
    }

    pub(super) fn has_worker(&self, worker: WorkerId) -> bool {
        lock(&self.workers).contains(&worker)
    }

    pub(super) fn keep_worker(&self, worker: WorkerId) {
        let mut workers = lock(&self.workers);
        if workers.len() >= OTHERS_MAX {
            workers.clear();
        }
        workers.insert(worker);
    }

    pub(super) fn batch(&self, batch: BatchId) -> Option<bool> {
        let batches = lock(&self.batches);
        batches.get(&batch).filter(|(at, _)| at.elapsed() < BATCH_FRESH).map(|&(_, is_own)| is_own)
    }

    pub(super) fn keep_batch(&self, batch: BatchId, is_own: bool) {
        keep(&self.batches, OTHERS_MAX, batch, (Instant::now(), is_own));
    }

    pub(super) fn version(&self, version: Version) -> Option<Arc<VersionNeeds>> {
        lock(&self.versions).get(&version).cloned()
    }

    pub(super) fn keep_version(&self, version: Version, needs: &Arc<VersionNeeds>) {
        keep(&self.versions, OTHERS_MAX, version, Arc::clone(needs));
    }
}

fn keep<K: Eq + Hash, V>(cache: &Mutex<HashMap<K, V>>, max: usize, key: K, value: V) {
    let mut cache = lock(cache);
    if cache.len() >= max {
        cache.clear();
    }
    cache.insert(key, value);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
