//! Stores for tests, and shortcuts for verbs on jobs.

use std::path::PathBuf;
use std::time::Duration;

use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::finish::{End, Failure, Finish, Finished};
use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use milepost_core::worker::NewWorker;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A migrated store in a temporary directory.
pub(crate) struct Home {
    pub(crate) store: SqliteStore,
    pub(crate) path: PathBuf,
    _dir: TempDir,
}

impl Home {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("milepost.db");
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        store.migrate().await.unwrap();
        Self { store, path, _dir: dir }
    }

    /// Opens the file as another process would.
    pub(crate) fn neighbour(&self) -> SqliteStore {
        SqliteStore::open(&self.path, SqliteOptions::default()).unwrap()
    }

    /// Opens a plain connection to the file.
    pub(crate) fn connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.path).unwrap()
    }
}

pub(crate) fn job(kind: &str) -> NewJob {
    NewJob::new(kind, &"payload").unwrap()
}

pub(crate) async fn enqueue(store: &dyn Store, job: NewJob) -> JobId {
    store.enqueue_many(&[job]).await.unwrap()[0].job
}

pub(crate) async fn worker(store: &dyn Store, kinds: &[&str], lease: Duration) -> WorkerId {
    let worker = NewWorker {
        name: "tester".to_owned(),
        queues: vec!["default".to_owned()],
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        lease,
        ..NewWorker::default()
    };
    store.register_worker(&worker).await.unwrap()
}

pub(crate) async fn claim(
    store: &dyn Store,
    worker: WorkerId,
    kinds: &[&str],
    limit: u32,
) -> Vec<ClaimedJob> {
    claim_as(store, worker, 1, kinds, limit).await
}

pub(crate) async fn claim_as(
    store: &dyn Store,
    worker: WorkerId,
    claim_id: i32,
    kinds: &[&str],
    limit: u32,
) -> Vec<ClaimedJob> {
    let claim = Claim {
        worker,
        claim_id,
        queues: vec!["default".to_owned()],
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        limit,
        thorough: false,
    };
    store.claim(&claim).await.unwrap()
}

pub(crate) async fn finish(store: &dyn Store, worker: WorkerId, run: Run, end: End) -> Finished {
    let finish = Finish { run, end, grouped: true, task: false };
    store.finish_many(worker, &[finish]).await.unwrap()[0]
}

pub(crate) fn failure() -> Failure {
    Failure { code: "broken".to_owned(), message: "it broke".to_owned() }
}

pub(crate) fn success() -> End {
    End::Succeed { result: Some("1".to_owned()) }
}

pub(crate) fn retry(delay: Duration) -> End {
    End::Retry { delay, failure: failure() }
}

pub(crate) async fn state(store: &dyn Store, job: JobId) -> JobState {
    store.job(job).await.unwrap().unwrap().row.state
}
