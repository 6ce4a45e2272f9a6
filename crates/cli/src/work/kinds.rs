//! Handlers of a worker for the kinds of a configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use milepost::{Context, JobError, KindOptions, Outcome, WorkerBuilder, WorkerOptions};
use milepost_cli_support::store::StoreAddress;
use milepost_core::secrets::Secrets;
use milepost_executors::exec::Exec;
use milepost_executors::http::Http;

use crate::config::{self, Executor, Kind};
use crate::selection::FILE_DEFAULT;

/// The time after a program's grace period in which it is reaped.
pub(super) const REAP: Duration = Duration::from_secs(1);

/// Adds a handler for each kind to the worker, and sets grace periods that are long enough to stop them.
pub(crate) fn serve(
    mut builder: WorkerBuilder,
    kinds: BTreeMap<String, Kind>,
    folder: &Path,
    secrets: &Secrets,
    options: &mut WorkerOptions,
) -> Result<WorkerBuilder> {
    for (name, kind) in kinds {
        let mut of_kind =
            KindOptions { backoff: kind.backoff.policy(), timeout: kind.timeout(), ..KindOptions::default() };
        match kind.executor().with_context(|| format!("nothing runs the kind {name}"))? {
            Executor::Http(http) => {
                let http = Http::new(&http.config(secrets)).with_context(|| format!("the kind {name}"))?;
                let http = Arc::new(http);
                builder = builder.handle_kind(&name, of_kind, move |context| {
                    let http = http.clone();
                    async move { logged(&context, Words::Kept, http.run(&context)).await }
                });
            }
            Executor::Exec(exec) => {
                let config = exec.config(folder, secrets);
                of_kind.stop_grace = config.kill_grace + REAP;
                options.hand_back_grace = options.hand_back_grace.max(of_kind.stop_grace);
                let exec = Arc::new(Exec::new(config));
                builder = builder.handle_kind(&name, of_kind, move |context| {
                    let exec = exec.clone();
                    async move { logged(&context, Words::Logged, exec.run(&context)).await }
                });
            }
        }
    }
    Ok(builder)
}

/// Makes a worker run the programs of a folder with a configuration.
pub(crate) fn serve_folder(
    worker: WorkerBuilder,
    folder: &Path,
    address: &StoreAddress,
) -> Result<WorkerBuilder> {
    let config = config::load(&folder.join(FILE_DEFAULT), Some(address))?;
    let mut options = WorkerOptions::default();
    config.worker.apply(&mut options);
    let worker = serve(worker, config.kinds, &config.folder, &config.secrets, &mut options)?;
    Ok(worker.options(|all| {
        all.concurrency = options.concurrency;
        all.hand_back_grace = options.hand_back_grace;
    }))
}

/// Whether the message of a failure is also written to the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// The message is logged: a program's standard error is written for operators. Known secrets are hidden in it.
    Logged,
    /// The message is only stored with the job: a server's response may contain secrets.
    Kept,
}

impl Words {
    /// Returns the message of a failure, if it is to be logged.
    pub(super) fn of(self, error: &JobError) -> Option<&str> {
        (self == Self::Logged).then_some(error.message.as_str())
    }
}

/// Runs an attempt and logs its result.
async fn logged(
    context: &Context,
    words: Words,
    run: impl Future<Output = Result<Outcome, JobError>>,
) -> Result<Outcome, JobError> {
    let began = Instant::now();
    let answer = run.await;
    let (job, took_ms) = (context.job(), began.elapsed().as_millis());
    let (id, kind, attempt) = (job.run.job, job.kind.as_str(), job.attempt);
    match &answer {
        Ok(Outcome::Stopped) => tracing::info!(job = %id, kind, attempt, took_ms, "stopped"),
        Ok(_) => tracing::info!(job = %id, kind, attempt, took_ms, "succeeded"),
        Err(error) => tracing::warn!(
            job = %id, kind, attempt, took_ms, retryable = error.retryable, error = words.of(error),
            "failed: {}", error.code
        ),
    }
    answer
}
