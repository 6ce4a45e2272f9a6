//! A store, a worker whose only kind is run by an executor, and the results of its jobs.

pub(crate) mod server;

use std::sync::Arc;
use std::time::Duration;

use milepost::{
    Context, JobError, KindOptions, NewJob, Outcome, RetryPolicy, Schedule, Source, Spec, Worker,
};
use milepost_conformance::runtime::{self, KIND};
use milepost_core::history::HistoryEntry;
use milepost_core::ident::JobId;
use milepost_core::job::Enqueued;
use milepost_core::port::Operation;
use milepost_core::schedule::Made;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_executors::exec::{Exec, ExecConfig};
use milepost_executors::http::{Http, HttpConfig};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::{Scene, wait};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) worker: Worker,
    _folder: TempDir,
}

/// Returns options that retry failures after a short delay.
pub(crate) fn soon() -> KindOptions {
    RetryPolicy::fixed(Duration::from_millis(10)).into()
}

/// Returns settings for calls to a URL of this machine.
pub(crate) fn local(url: impl Into<String>) -> HttpConfig {
    HttpConfig::to(url).allow(&["127.0.0.0/8"])
}

impl Stage {
    pub(crate) async fn http(config: HttpConfig) -> Self {
        Self::http_with(soon(), config).await
    }

    pub(crate) async fn http_with(options: KindOptions, config: HttpConfig) -> Self {
        let http = Arc::new(Http::new(&config).unwrap());
        Self::with(options, move |context| {
            let http = http.clone();
            async move { http.run(&context).await }
        })
        .await
    }

    pub(crate) async fn exec(config: ExecConfig) -> Self {
        let stop_grace = config.kill_grace + wait::LIMIT;
        Self::exec_with(KindOptions { stop_grace, ..soon() }, config).await
    }

    pub(crate) async fn exec_with(options: KindOptions, config: ExecConfig) -> Self {
        let exec = Arc::new(Exec::new(config));
        Self::with(options, move |context| {
            let exec = exec.clone();
            async move { exec.run(&context).await }
        })
        .await
    }

    async fn with<F, Fut>(options: KindOptions, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
        store.migrate().await.unwrap();
        let scene = Scene::on(Arc::new(store)).await;
        let builder = runtime::builder(scene.store.clone()).handle_kind(KIND, options, handler);
        let worker = builder.start().await.unwrap();
        Self { scene, worker, _folder: folder }
    }

    pub(crate) async fn enqueue(&self, payload: &Value) -> JobId {
        self.scene.enqueue(NewJob::new(KIND, payload).unwrap()).await
    }

    /// Runs a schedule on behalf of an operator; returns the job and the time of its tick.
    pub(crate) async fn scheduled(&self) -> (JobId, String) {
        let daily = Spec::cron("@daily", "UTC").unwrap();
        let schedule = Schedule::new("daily", daily, NewJob::new(KIND, &()).unwrap());
        self.scene.store.put_schedule(&schedule, Source::Operator).await.unwrap();
        let made = self.scene.store.run_schedule_now("daily", None).await.unwrap();
        let Made::Job(Enqueued { job, .. }) = made else { panic!("not a job: {made:?}") };
        self.scene.assert_all_succeed(&[job]).await;
        (job, self.scene.view(job).await.row.nominal_at.unwrap().to_string())
    }

    /// Enqueues a job and returns its result once it has succeeded.
    pub(crate) async fn result(&self, payload: &Value) -> Option<Value> {
        let job = self.enqueue(payload).await;
        self.scene.assert_all_succeed(&[job]).await;
        self.scene.view(job).await.result.map(|json| serde_json::from_str(json.get()).unwrap())
    }

    /// Enqueues a job and returns how its first attempt ended.
    pub(crate) async fn first_end(&self) -> HistoryEntry {
        let job = self.enqueue(&Value::Null).await;
        self.end_of(job).await
    }

    /// Returns how the first attempt of a job ended.
    pub(crate) async fn end_of(&self, job: JobId) -> HistoryEntry {
        let is_end = |entry: &HistoryEntry| !matches!(entry.verb, Verb::Create | Verb::Claim);
        let find = || async { self.scene.history(job).await.into_iter().find(is_end) };
        wait::until("the first attempt has ended", || async { find().await.is_some() }).await;
        find().await.unwrap()
    }

    /// Cancels a running job as an operator.
    pub(crate) async fn cancel(&self, job: JobId) {
        let operation = Operation::new(Verb::Cancel).grace(Duration::from_secs(3600));
        self.scene.operate(job, operation).await.unwrap();
        self.scene.until(job, JobState::Canceled).await;
        self.scene.assert_history_folds(job).await;
    }
}
