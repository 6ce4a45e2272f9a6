//! `milepost work`: a worker that runs what a configuration says.

mod kinds;
mod signals;

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use futures::future::{Either, select};
use milepost::{Store, Worker, WorkerOptions};
use milepost_core::limit::Limit;

use self::signals::Signals;
use crate::config::command::ConfigFile;
use crate::config::{self, Config, LimitEntry, Redis, ScheduleEntry};
use crate::log::LogFormat;
use crate::output::Outcome;
use crate::redis::RedisArgs;
use crate::store::{self, Schema, StoreAddress};

const HELP: &str = "\
What is given here goes before what the environment says (MILEPOST_STORE, ...),
and that before the file.

SIGTERM or SIGINT: no further jobs are taken, those that run get `drain` to end,
and what did not end by then is handed back. A second one ends all at once; the
jobs are taken back when the lease has run out.

Exit status: 0 shut down well, 1 failed, 2 wrong usage or a faulty
configuration, 128 and the signal's number when a second signal came.

Examples:
  milepost config init && milepost work
  milepost work --config /etc/milepost.toml --log-format json
  milepost work --queue mail --concurrency 4";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// The worker's name for people [default: host and process id]
    #[arg(long, env = "MILEPOST_WORKER_NAME")]
    name: Option<String>,
    /// A queue to serve; may be given several times
    #[arg(long = "queue", value_name = "QUEUE", env = "MILEPOST_WORKER_QUEUES", value_delimiter = ',')]
    queues: Vec<String>,
    /// The most jobs that run at once
    #[arg(long, value_name = "N", env = "MILEPOST_WORKER_CONCURRENCY")]
    concurrency: Option<NonZeroUsize>,
    #[command(flatten)]
    redis: RedisArgs,
    /// How all on stderr is written
    #[arg(long, default_value = "text", env = "MILEPOST_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
}

pub(crate) async fn run(args: WorkArgs, named: Option<StoreAddress>) -> Result<Outcome> {
    let mut config = config::load(&args.file.path)?;
    let file = args.file.path.display();
    if config.kinds.is_empty() {
        bail!(
            "{file} has no kinds, so that there is nothing to run; add one, such as\n  [kinds.echo]\n  exec = {{ program = \"cat\" }}"
        );
    }
    let address = named.or_else(|| config.store.take()).unwrap_or_default();
    let mut signals = Signals::listen()?;
    let store = tokio::select! {
        store = store::open(&address, Schema::MadeWhenEmpty) => store?,
        signal = signals.next() => return Ok(Outcome::Interrupted(signal)),
    };
    let worker = start(store, config, args, &address).await?;
    leave(worker, &mut signals).await
}

/// Waits until it is to leave; the second signal is for those who cannot wait.
async fn leave(worker: Worker, signals: &mut Signals) -> Result<Outcome> {
    let signal = signals.next().await;
    tracing::info!("signal {signal}: taking no further jobs; ending what runs, or handing it back");
    match select(pin!(worker.shutdown()), pin!(signals.next())).await {
        Either::Left(((), _)) => {
            tracing::info!("left");
            Ok(Outcome::Done)
        }
        Either::Right((signal, _)) => {
            tracing::warn!(
                "signal {signal} again: leaving at once; what runs is taken back when the lease has run out"
            );
            Ok(Outcome::Interrupted(signal))
        }
    }
}

/// Makes the store's limits stand as the file says.
async fn keep_limits(store: &dyn Store, entries: &[LimitEntry]) -> Result<()> {
    let limits: Vec<Limit> = entries.iter().map(LimitEntry::limit).collect();
    let synced = store.sync_limits(&limits).await?;
    for target in synced.removed {
        tracing::info!("the limit of {target} is gone from the configuration, and is removed");
    }
    for target in synced.foreign {
        tracing::warn!(
            "an operator set a limit of {target}, which is left as it is; the one of the configuration does not hold"
        );
    }
    Ok(())
}

/// Makes the store's schedules stand as the file says.
async fn keep_schedules(store: &dyn Store, entries: &[ScheduleEntry]) -> Result<()> {
    let schedules = entries.iter().map(ScheduleEntry::schedule).collect::<Result<Vec<_>>>()?;
    let synced = store.sync_schedules(&schedules).await?;
    for name in synced.removed {
        tracing::info!("the schedule {name} is gone from the configuration, and is removed");
    }
    for name in synced.foreign {
        tracing::warn!(
            "an operator made a schedule {name}, which is left as it is; the one of the configuration does not tick"
        );
    }
    Ok(())
}

async fn start(
    store: Arc<dyn Store>,
    config: Config,
    args: WorkArgs,
    address: &StoreAddress,
) -> Result<Worker> {
    let Config { worker, redis, kinds, schedules, limits, retention, folder, .. } = config;
    if let Some(limits) = limits {
        keep_limits(store.as_ref(), &limits).await?;
    }
    if let Some(schedules) = schedules {
        keep_schedules(store.as_ref(), &schedules).await?;
    }
    let mut options = WorkerOptions { retention: retention.policy(), ..WorkerOptions::default() };
    worker.apply(&mut options);
    if let Some(name) = args.name {
        options.name = name;
    }
    if !args.queues.is_empty() {
        options.queues = args.queues;
    }
    if let Some(concurrency) = args.concurrency {
        options.concurrency = concurrency.get();
    }
    let names: Vec<String> = kinds.keys().cloned().collect();
    let mut builder = kinds::serve(Worker::builder(store), kinds, &folder, &mut options)?;
    if let Some(redis) = args.redis.helper(redis.map(Redis::config)) {
        builder = builder.coordination(Arc::new(redis));
    }
    let (name, queues, concurrency) = (options.name.clone(), options.queues.join(", "), options.concurrency);
    let worker = builder.options(|all| *all = options).start().await?;
    tracing::info!(
        store = %address, queues, concurrency,
        "{name} runs {} from {}", names.join(", "), args.file.path.display()
    );
    Ok(worker)
}
