//! `milepost demo`: durable jobs on real data, a worker that is killed, and checks that nothing was lost or duplicated.

mod bar;
mod console;
mod ledger;
mod notices;
mod places;
mod plan;
mod process;
mod report;
mod settlement;
mod show;
#[cfg(test)]
mod tampering;
mod verify;
mod worker;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::HumanCount;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::StoreAddress;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use ledger::Scope;
use places::PLACES_MAX;
use plan::Plan;
use process::WorkerProcess;
use settlement::Settled;
use show::Show;
pub use worker::{DemoWorkerArgs, run as work};

/// The number of the process for jobs that the user retries in the console.
const WORKER_AT_THE_END: u32 = 8;
/// The minimum number of places. With fewer, all jobs would be done before a worker can be killed half way.
const PLACES_MIN: u32 = 1000;

/// The help text of the command.
pub const EXAMPLES: &str = "\
Part 1, jobs: each of the 171,075 places of GeoNames (CC BY 4.0) gets a job
that writes one row, the notification, in the transaction that completes the
job. One place in a hundred fails at first and is retried, a dozen fail
permanently. Two worker processes share the work. Half way, one of them is
killed (SIGKILL); when its lease has expired, the other takes its jobs back.
Queries then check that no row is missing or duplicated.

Part 2, bulk jobs: the places have a million channels, and two bulk jobs of one
group are started at the same moment: one for all channels, one for those near
Istanbul. The process that runs the first is killed in the middle of a chunk;
the other continues from the cursor. A run is aborted and resumed. Queries
check that every target has one row per run, and that no two runs ran at once.

Part 3, a batch: the places are split by country, a program (sh and awk) works
on each country, the results are joined, and a report is written. One of three
worker processes is killed while its programs run. The report is compared with
totals computed without a batch, and each task must have succeeded once, after
its predecessors.

At the end, the console shows the results, at a printed address until Ctrl-C,
and workers run the jobs that you retry there; --no-serve skips this.

Without --store and MILEPOST_STORE, the demo uses a temporary SQLite file and
removes it. A given store is created if it is empty. The demo leaves its data
there: jobs in separate queues for each run (demo-...), batches of the DAG
demo.settlement, and rows in tables named milepost_demo_.... Other jobs are not
affected.

Examples:
  milepost demo
  milepost demo --store sqlite:demo.db && milepost --store sqlite:demo.db batch list
  milepost demo --store postgres://postgres@localhost/demo --places 20000

  milepost demo --no-serve

Exit status: 0 every check passed, 1 a check or the demo failed.";

/// How to show it.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The number of places
    #[arg(long, value_name = "COUNT", default_value_t = PLACES_MAX,
          value_parser = clap::value_parser!(u32).range(i64::from(PLACES_MIN)..=i64::from(PLACES_MAX)))]
    places: u32,
    /// Exit after the last table, without serving the console
    #[arg(long)]
    no_serve: bool,
}

/// Runs the demo and reports whether all checks passed.
pub async fn run(args: &DemoArgs, named: Option<&StoreAddress>) -> Result<Outcome> {
    let plan = Plan { places: args.places };
    if let Some(address) = named {
        return Box::pin(show(args, plan, address)).await;
    }
    let folder = TempDir::with_prefix("milepost-demo-").context("cannot create a temporary folder")?;
    let address = StoreAddress::Sqlite(folder.path().join("demo.db"));
    let outcome = Box::pin(show(args, plan, &address)).await;
    let path = folder.path().to_owned();
    folder.close().with_context(|| format!("cannot remove {}", path.display()))?;
    if outcome.is_ok() {
        output::note("the store was removed; --store sqlite:demo.db keeps it");
    }
    outcome
}

/// Runs the demo, and then the console until the user stops it.
async fn show(args: &DemoArgs, plan: Plan, address: &StoreAddress) -> Result<Outcome> {
    let scope = Scope::new();
    let (outcome, settled) = unless_interrupted(demonstrate(plan, address, &scope)).await?;
    if !args.no_serve {
        // Runs the jobs that the user retries in the console.
        let mut workers = vec![WorkerProcess::spawn(WORKER_AT_THE_END, address, &scope, plan)?];
        if let Some(settled) = &settled {
            workers.push(settled.worker(address, &scope)?);
        }
        serve(address).await?;
        for worker in workers {
            worker.finish().await?;
        }
    }
    Ok(outcome)
}

/// Serves the console until the user stops it.
async fn serve(address: &StoreAddress) -> Result<()> {
    let stop = CancellationToken::new();
    let console = console::show(address, stop.clone());
    tokio::pin!(console);
    tokio::select! {
        served = &mut console => served,
        signal = interrupted() => {
            signal.context("cannot listen for signals")?;
            stop.cancel();
            console.await
        }
    }
}

/// Runs all parts; returns whether all checks passed, and the remains of the batch.
async fn demonstrate(
    plan: Plan,
    address: &StoreAddress,
    scope: &Scope,
) -> Result<(Outcome, Option<Settled>)> {
    let ledger = ledger::open(address).await.with_context(|| format!("cannot use the store {address}"))?;
    ledger.lay(address).await?;
    let places = HumanCount(plan.places.into());
    output::note(format_args!(
        "notifying {places} places of the world, one job each, in queue {}",
        scope.queue
    ));
    let show = Show { ledger: ledger.clone(), address, scope, plan };
    let seen = show.perform().await?;
    output::note("checking the database");
    let facts = ledger.facts(scope).await?;
    let checks = verify::verify(plan, &facts, &seen);
    output::heard_or_not(report::print(plan, &checks, &seen))?;
    let notices = notices::perform(address, scope, plan).await?;
    output::heard_or_not(report::print_notices(&notices))?;
    let settled = settlement::perform(ledger.store(), address, scope, plan).await?;
    if let Some(settled) = &settled {
        output::heard_or_not(report::print_settlement(&settled.checks))?;
    }
    let settlement = settled.iter().flat_map(|settled| &settled.checks);
    let passed = checks.iter().chain(&notices).chain(settlement).all(|check| check.passed);
    Ok((if passed { Outcome::Done } else { Outcome::SomeFailed }, settled))
}

/// Runs the demo until it ends or is interrupted. Dropping its future kills the workers.
async fn unless_interrupted<T>(demo: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        signal = interrupted() => {
            signal.context("cannot listen for signals")?;
            bail!("interrupted; the worker processes were ended")
        }
        outcome = demo => outcome,
    }
}

/// Waits for a signal that would end the process, so that the demo can clean up.
#[cfg(unix)]
async fn interrupted() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        ctrl_c = tokio::signal::ctrl_c() => ctrl_c,
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
