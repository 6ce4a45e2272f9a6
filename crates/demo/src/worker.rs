//! A worker process of the demo: runs jobs until its parent closes its standard input.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use milepost::{Context, Job, JobError, Outcome, RetryPolicy, Worker, WorkerBuilder};
use milepost_cli_support::output;
use milepost_cli_support::store::StoreAddress;

use super::ledger::{self, Ledger, Notification};
use super::notices;
use super::places::{PLACES_MAX, Place};
use super::plan::{BACKOFF, Plan};

/// The lease of a worker: short, because users watch the demo.
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// The minimum response time of a place.
const ANSWER_MIN: Duration = Duration::from_millis(10);
/// The minimum time in which two workers process all places. The demo must observe the moment when half of them are done, also on a machine
/// that gives it no processor time for a while.
const RUN_MIN: Duration = Duration::from_secs(6);
/// The maximum number of jobs that a worker runs at the same time.
const CONCURRENCY_MAX: u32 = 400;
/// The minimum number of consecutive jobs per slot. With few places a worker runs fewer jobs at a time; otherwise all would be done at
/// once.
const TURNS_MIN: u32 = 200;

/// What the demo tells its worker processes. The store's address comes by the environment: arguments can be
/// seen by everybody on the machine.
#[derive(Debug, Args)]
pub struct DemoWorkerArgs {
    #[arg(long)]
    pub(super) name: String,
    #[arg(long)]
    pub(super) queue: String,
    #[command(flatten)]
    duty: Duty,
}

/// What the worker runs: one of the two.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Duty {
    /// The handlers of the demo, for this number of places
    #[arg(long)]
    places: Option<u32>,
    /// The programs in this folder
    #[arg(long)]
    programs: Option<PathBuf>,
}

impl Job for Place {
    const KIND: &'static str = "demo.notify";
    const MAX_ATTEMPTS: u32 = 5;

    fn backoff() -> RetryPolicy {
        BACKOFF
    }
}

/// Runs until the parent closes the pipe or dies. `programs` makes a worker run the programs of a folder, as `milepost work` does.
pub async fn run(
    args: DemoWorkerArgs,
    address: &StoreAddress,
    programs: impl FnOnce(WorkerBuilder, &Path) -> Result<WorkerBuilder>,
) -> Result<output::Outcome> {
    let ledger = ledger::open(address).await?;
    let DemoWorkerArgs { name, queue, duty } = args;
    let worker = Worker::builder(ledger.store()).queues([queue.as_str()]).options(|options| {
        options.name = name;
        options.lease = LEASE;
        options.poll_interval = Duration::from_millis(100);
    });
    let worker = match duty {
        Duty { programs: Some(folder), .. } => programs(worker, &folder)?,
        Duty { places, .. } => {
            let plan = Plan { places: places.unwrap_or(PLACES_MAX) };
            serve(worker, ledger, address, &queue, plan).await?
        }
    };
    let worker = worker.start().await?;
    leave_interrupts_to_the_parent();
    // The pipe is closed when the parent closes it, and also when the parent dies for any reason.
    tokio::task::spawn_blocking(|| io::copy(&mut io::stdin().lock(), &mut io::sink())).await??;
    worker.shutdown().await;
    Ok(output::Outcome::Done)
}

/// Runs the handlers of the demo on the worker.
async fn serve(
    worker: WorkerBuilder,
    ledger: Arc<dyn Ledger>,
    address: &StoreAddress,
    queue: &str,
    plan: Plan,
) -> Result<WorkerBuilder> {
    let concurrency = (plan.places / TURNS_MIN).clamp(1, CONCURRENCY_MAX);
    let answer = ANSWER_MIN.max(RUN_MIN * 2 * concurrency / plan.places.max(1));
    let notifier = Arc::new(Notifier { ledger, plan, queue: queue.into(), answer });
    let concurrency = concurrency as usize;
    let worker =
        worker.handle(move |place, context| notifier.clone().notify(place, context)).options(|options| {
            options.concurrency = concurrency;
            options.claim_batch = concurrency.div_ceil(2);
        });
    notices::serve(worker, address, queue, plan).await
}

/// Ignores Ctrl-C, which reaches every process of the terminal; the parent decides how to react.
fn leave_interrupts_to_the_parent() {
    tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
}

/// The handler of the demo, which notifies places.
struct Notifier {
    ledger: Arc<dyn Ledger>,
    plan: Plan,
    queue: Arc<str>,
    /// The response time of a place.
    answer: Duration,
}

impl Notifier {
    /// Handles a job. Its effect and its success are committed in one transaction.
    async fn notify(self: Arc<Self>, place: Place, context: Context) -> Result<Outcome, JobError> {
        tokio::time::sleep(self.answer).await;
        let attempt = context.attempt();
        self.plan.trouble(&place, attempt)?;
        let notification = Notification { queue: self.queue.clone(), place: place.id, attempt };
        self.ledger.notify(context.run(), notification).await?;
        Ok(Outcome::Completed)
    }
}
