//! `milepost work`: runs the jobs of a configuration.

mod batches;
mod bulk;
pub(crate) mod kinds;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use futures::future::{Either, join_all, select};
use milepost::{Coordination, Store, Worker, WorkerBuilder, WorkerOptions};
use milepost_cli_support::log_format::LogFormat;
use milepost_cli_support::operator;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{Database, StoreAddress, StoreWait};
use milepost_core::limit::Limit;
use milepost_core::port::check_kind_of_ticks;
use milepost_core::precedence::Scope;
use milepost_core::schedule::{Makes, Schedule, Source};

use self::bulk::{Bulks, Checked};
use crate::config::{BulkEntry, Config, LimitEntry, ScheduleEntry};
use crate::redis::RedisArgs;
use crate::selection::Selection;
use crate::signals::{self, Signals};

const HELP: &str = "\
Options take precedence over environment variables (MILEPOST_STORE, ...), which
take precedence over the file.

SIGTERM or SIGINT: no further jobs are claimed, running jobs get `drain` to
end, and jobs that have not ended by then are handed back. A second signal ends
the process immediately; its jobs are taken back when its lease has expired.

Exit status: 0 normal shutdown, 1 failure, 2 wrong usage or an invalid
configuration, 128 plus the signal number after a second signal that came at
least one second later.

Examples:
  milepost config init && milepost work
  milepost work --config /etc/milepost.toml --log-format json
  milepost work --queue mail --concurrency 4";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    worker: WorkerArgs,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    store: StoreWait,
    /// The format of all output on stderr
    #[arg(long, default_value = "text", env = "MILEPOST_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// Options that override `[worker]` of the file.
#[derive(Debug, Default, Args)]
pub(crate) struct WorkerArgs {
    /// The worker's display name [default: host and process id]
    #[arg(long, env = "MILEPOST_WORKER_NAME")]
    name: Option<String>,
    /// A queue to serve; may be given several times
    #[arg(long = "queue", value_name = "QUEUE", env = "MILEPOST_WORKER_QUEUES", value_delimiter = ',')]
    queues: Vec<String>,
    /// The maximum number of jobs that run at the same time
    #[arg(long, value_name = "N", env = "MILEPOST_WORKER_CONCURRENCY")]
    concurrency: Option<NonZeroUsize>,
}

pub(crate) async fn run(args: WorkArgs, selection: &Selection) -> Result<Outcome> {
    let mut config = selection.config()?;
    if !has_work(&config) {
        let file = selection.file().display();
        bail!(
            "{file} has no kinds, so there is nothing to run; add one, such as\n  [kinds.echo]\n  exec = {{ program = \"cat\" }}"
        );
    }
    let address = config.address(selection.named_store());
    let mut signals = Signals::listen()?;
    let database = tokio::select! {
        database = args.store.open(&address) => database?,
        signal = signals.next() => return Ok(Outcome::Interrupted(signal)),
    };
    let at = At { database, address, wait: args.store };
    let helper = args.redis.helper(config.redis.take());
    let begun = signals.during(start(config, selection.file(), args.worker, helper, at)).await?;
    match (begun.started, begun.signal) {
        (None, signal) => Ok(Outcome::Interrupted(signal.unwrap_or_default())),
        (Some(workers), Some(signal)) => leave(workers, signal, &mut signals).await,
        (Some(workers), None) => {
            let signal = signals.next().await;
            leave(workers, signal, &mut signals).await
        }
    }
}

/// Returns whether the configuration contains anything for a worker to run.
pub(crate) fn has_work(config: &Config) -> bool {
    !config.kinds.is_empty() || config.bulk.as_ref().is_some_and(|bulks| !bulks.is_empty())
}

/// The store of workers, and how long their start waits for it.
pub(crate) struct At {
    pub(crate) database: Database,
    pub(crate) address: StoreAddress,
    pub(crate) wait: StoreWait,
}

/// Applies the configuration in `path` to the store, and starts its workers.
pub(crate) async fn start(
    mut config: Config,
    path: &Path,
    worker: WorkerArgs,
    helper: Option<Arc<dyn Coordination>>,
    at: At,
) -> Result<Vec<Worker>> {
    let start = prepare(&mut config, path, at).await?;
    start.start(config, path, worker, helper).await
}

/// Checks everything of the configuration in `path` that needs the store, and changes nothing in it.
pub(crate) async fn prepare(config: &mut Config, path: &Path, at: At) -> Result<Start> {
    let At { database, address, wait } = &at;
    let entries = config.bulk.take();
    let schedules = schedules(config, entries.as_ref())?;
    let bulks = match entries {
        Some(entries) => {
            let bulks = Bulks {
                file: path.to_owned(),
                entries,
                places: std::mem::take(&mut config.bulk_places),
                databases: std::mem::take(&mut config.databases),
                secrets: config.secrets.clone(),
            };
            Some(bulks.check(database, &config.folder).await?)
        }
        None => None,
    };
    // Of the stored bulk jobs in its scope, those of the file were checked with it, and the others are removed.
    let stays = |name: &str| bulks.is_none() || !config.scope.has(name);
    let store = database.store();
    if !config.batch.is_empty() {
        let stored = wait.until_reachable(address, async || Ok(store.bulk_definitions().await?)).await?;
        let names: Vec<&str> =
            stored.iter().map(|stored| stored.name.as_str()).filter(|name| stays(name)).collect();
        batches::check_all(&config.batch, &config.folder, &names)?;
    }
    if let Some(schedules) = &schedules {
        wait.until_reachable(address, async || check_schedules(store.as_ref(), schedules, stays).await)
            .await?;
    }
    Ok(Start { at, bulks, schedules })
}

/// Refuses schedules whose jobs have the kind of a stored bulk job that stays.
async fn check_schedules(
    store: &dyn Store,
    schedules: &[Schedule],
    stays: impl Fn(&str) -> bool,
) -> Result<()> {
    let stored = store.bulk_definitions().await?;
    for schedule in schedules {
        let Makes::Job(job) = &schedule.makes else { continue };
        let definition = stored.iter().find(|stored| stored.name == job.kind && stays(&stored.name));
        check_kind_of_ticks(schedule, definition)?;
    }
    Ok(())
}

/// Waits until the workers have stopped, for which this signal has asked; a second signal ends the process immediately.
async fn leave(workers: Vec<Worker>, signal: u8, signals: &mut Signals) -> Result<Outcome> {
    tracing::info!(
        "{}: claiming no further jobs; waiting for running jobs, or handing them back",
        signals::name(signal)
    );
    let shutdown = join_all(workers.into_iter().map(Worker::shutdown));
    match select(pin!(shutdown), pin!(signals.next())).await {
        Either::Left(_) => {
            tracing::info!("left");
            Ok(Outcome::Done)
        }
        Either::Right((signal, _)) => {
            tracing::warn!(
                "{} again: exiting immediately; running jobs are taken back when the lease has expired",
                signals::name(signal)
            );
            Ok(Outcome::Interrupted(signal))
        }
    }
}

/// Returns the schedules of a file, including those of its bulk jobs; `None` if it has no schedule settings.
fn schedules(config: &Config, bulks: Option<&BTreeMap<String, BulkEntry>>) -> Result<Option<Vec<Schedule>>> {
    let bulks = || bulks.into_iter().flatten();
    if config.schedules.is_none() && !bulks().any(|(_, bulk)| bulk.is_scheduled()) {
        return Ok(None);
    }
    let of_jobs = config.schedules.iter().flatten().map(ScheduleEntry::schedule);
    let of_bulks = bulks().filter_map(|(name, bulk)| bulk.schedule(name).transpose());
    of_jobs.chain(of_bulks).collect::<Result<_>>().map(Some)
}

/// Returns the store for applying the configuration. Changes are audited in the name of the user who starts the worker.
fn configuring(database: &Database) -> Result<Arc<dyn Store>> {
    operator::acting_because(database.store().as_ref(), Some("applied from the configuration"))
}

/// Applies the limits of the file to the store.
async fn keep_limits(store: &dyn Store, entries: &[LimitEntry], scope: &Scope) -> Result<()> {
    let limits: Vec<Limit> = entries.iter().map(LimitEntry::limit).collect();
    let synced = store.sync_limits(&limits, scope).await?;
    for target in synced.removed {
        tracing::info!("removed the limit of {target}, which is no longer in the configuration");
    }
    for target in synced.foreign {
        tracing::warn!(
            "an operator set a limit of {target}, which is not changed; the one of the configuration is ignored"
        );
    }
    Ok(())
}

/// Applies the schedules of the file to the store.
async fn keep_schedules(store: &dyn Store, schedules: &[Schedule], scope: &Scope) -> Result<()> {
    let synced = store.sync_schedules(schedules, scope).await?;
    for name in synced.removed {
        tracing::info!("removed the schedule {name}, which is no longer in the configuration");
    }
    for name in synced.foreign {
        tracing::warn!(
            "an operator created a schedule {name}, which is not changed; the one of the configuration is ignored"
        );
    }
    Ok(())
}

/// Removes the schedules that these bulk jobs had in an earlier configuration. It has none now, so it does not list the others either.
async fn remove_schedules_of_bulks(store: &dyn Store, bulks: &[String]) -> Result<()> {
    if bulks.is_empty() {
        return Ok(());
    }
    for view in store.schedules().await? {
        let name = view.schedule.name;
        let is_of_bulk = matches!(&view.schedule.makes, Makes::Job(job) if job.kind == name);
        if view.source == Source::Config && is_of_bulk && bulks.contains(&name) {
            store.remove_schedule(&name, Source::Config).await?;
            tracing::info!(
                "removed the schedule of the bulk job {name}, which is no longer in the configuration"
            );
        }
    }
    Ok(())
}

/// What to start, and on which store.
pub(crate) struct Start {
    at: At,
    /// The bulk jobs, if the file has any.
    bulks: Option<Checked>,
    schedules: Option<Vec<Schedule>>,
}

impl Start {
    /// Applies the configuration, and starts its workers.
    pub(crate) async fn start(
        self,
        config: Config,
        path: &Path,
        given: WorkerArgs,
        helper: Option<Arc<dyn Coordination>>,
    ) -> Result<Vec<Worker>> {
        let Config { scope, worker, kinds, limits, batch, retention, folder, secrets, .. } = config;
        let At { database, address, wait } = &self.at;
        let store = database.store();
        let configured = configuring(database)?;
        wait.until_reachable(address, async || {
            batches::define_all(configured.as_ref(), &batch, &folder).await?;
            self.keep(configured.as_ref(), limits.as_deref(), &scope).await
        })
        .await?;
        let start = async |builder: WorkerBuilder| {
            wait.until_reachable(address, async || Ok(builder.clone().start().await?)).await
        };
        let mut options = WorkerOptions { retention: retention.policy(), ..WorkerOptions::default() };
        let bulk_concurrency = worker.bulk_concurrency();
        worker.apply(&mut options);
        let file = path.display().to_string();
        given.apply(&mut options);
        let mut workers = Vec::new();
        if let Some(bulks) = self.bulks.filter(|bulks| !bulks.names().is_empty()) {
            let names = bulks.names().join(", ");
            let mut builder = bulks.worker(store.clone(), &options, bulk_concurrency);
            if let Some(helper) = &helper {
                builder = builder.coordination(helper.clone());
            }
            workers.push(start(builder).await?);
            tracing::info!(
                store = %address, concurrency = bulk_concurrency,
                "{} runs the bulk jobs {names} from {file}", options.name
            );
        }
        if !kinds.is_empty() {
            let names: Vec<String> = kinds.keys().cloned().collect();
            let mut builder = kinds::serve(Worker::builder(store), kinds, &folder, &secrets, &mut options)?;
            if let Some(helper) = helper {
                builder = builder.coordination(helper);
            }
            let (name, queues, concurrency) =
                (options.name.clone(), options.queues.join(", "), options.concurrency);
            workers.push(start(builder.options(|all| *all = options)).await?);
            tracing::info!(
                store = %address, queues, concurrency,
                "{name} runs {} from {file}", names.join(", ")
            );
        }
        Ok(workers)
    }

    /// Applies the file to the store.
    async fn keep(&self, store: &dyn Store, limits: Option<&[LimitEntry]>, scope: &Scope) -> Result<()> {
        if let Some(limits) = limits {
            keep_limits(store, limits, scope).await?;
        }
        // Bulk jobs come before the schedules that start them.
        let unscheduled = match &self.bulks {
            Some(bulks) => [bulks.keep(store, scope).await?, bulks.names()].concat(),
            None => Vec::new(),
        };
        match &self.schedules {
            Some(schedules) => keep_schedules(store, schedules, scope).await,
            None => remove_schedules_of_bulks(store, &unscheduled).await,
        }
    }
}

impl WorkerArgs {
    /// Applies the settings to the options.
    fn apply(self, options: &mut WorkerOptions) {
        if let Some(name) = self.name {
            options.name = name;
        }
        if !self.queues.is_empty() {
            options.queues = self.queues;
        }
        if let Some(concurrency) = self.concurrency {
            options.concurrency = concurrency.get();
        }
    }
}
