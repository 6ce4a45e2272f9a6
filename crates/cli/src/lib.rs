//! The `milepost` command: the only place where stores and runtime are combined. The program calls [`main`]; nothing else is public, except
//! the entry points of fuzz targets, with the feature `fuzzing`. Other programs use the crate `milepost`.

mod alerts;
mod args;
mod audit;
mod batch;
mod bulk;
mod config;
mod doctor;
mod enqueue;
mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod generated;
mod inbox;
mod init;
mod input;
mod jobs;
mod limits;
mod log;
mod migrate;
mod nearest;
#[cfg(test)]
mod ops_files;
mod prune;
mod queues;
mod records;
mod redis;
mod relay;
mod relocation;
mod retention;
mod schedules;
mod selection;
mod serve;
mod signals;
mod status;
mod time;
mod tokens;
mod traces;
mod watch;
mod work;
mod workers;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use milepost_cli_support::log_format::{self, LogFormat};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::process_secrets;
use milepost_cli_support::store::{self, Schema, StoreAddress};

use crate::args::{Cli, Command, DaemonCommand, ReportCommand};
use crate::config::Faulty;
use crate::selection::Selection;
use crate::traces::Traces;

/// The exit status of an examination that could not be completed.
const UNDECIDED: u8 = 3;
/// The exit status of wrong usage, including a faulty configuration.
const USAGE: u8 = 2;

/// How long a command that has ended waits for computations on other threads.
const COMPUTATION_MAX: Duration = Duration::from_secs(1);

/// Runs the command given by the process's arguments; returns the exit status.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start(&cli.command);
    process_secrets::hide_arguments();
    if cli.command.is_daemon() {
        process_secrets::hide_memory();
    }
    let address = match cli.store.map(|store| store.parse::<StoreAddress>()).transpose() {
        Ok(address) => address,
        Err(why) => return wrong_usage(why),
    };
    let selection = Selection::new(address, cli.config);
    let only_looks = cli.command.only_looks();
    let traces = match Traces::start(&cli.command) {
        Ok(traces) => traces,
        Err(error) => {
            output::error(&error);
            return ExitCode::from(USAGE);
        }
    };
    let _caller = traces::of_caller();
    let outcome = in_runtime(run_and_confirm(cli.command, &selection));
    traces.end();
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => ExitCode::FAILURE,
        Ok(Outcome::Undecided) => ExitCode::from(UNDECIDED),
        Ok(Outcome::WrongUsage) => ExitCode::from(USAGE),
        Ok(Outcome::Interrupted(signal)) => ExitCode::from(128 + signal),
        // The reader of a listing may close the pipe early.
        Err(error) if only_looks && output::is_unheard(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            if error.is::<Faulty>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// Runs a command. A computation on another thread, such as the check of a payload, may still run when the command has ended. Its result is
/// not needed then, so the process waits only [`COMPUTATION_MAX`] for it.
fn in_runtime(command: impl Future<Output = anyhow::Result<Outcome>>) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_timeout(COMPUTATION_MAX);
    outcome
}

fn wrong_usage(why: String) -> ExitCode {
    let error = Cli::command().error(clap::error::ErrorKind::InvalidValue, why);
    match log_format::format() {
        LogFormat::Text => error.exit(),
        LogFormat::Json => output::fault(error),
    }
    ExitCode::from(USAGE)
}

/// Runs a command. If it is refused, or changes nothing, a synchronous standby has the commits that it has seen when this returns.
async fn run_and_confirm(command: Command, selection: &Selection) -> anyhow::Result<Outcome> {
    // A created job is confirmed by the store, also if it is a duplicate.
    let (changes_rows, creates) = (command.changes_rows(), matches!(command, Command::Enqueue(_)));
    let outcome = Box::pin(run(command, selection)).await;
    let depends_on_reads = match &outcome {
        Err(error) => !store::is_unreachable(error),
        Ok(outcome) => !creates && !matches!(outcome, Outcome::Interrupted(_)),
    };
    if let (true, Some(address @ StoreAddress::Postgres(_))) =
        (changes_rows && depends_on_reads, selection.used())
        && let Ok(store) = store::open(address, Schema::MustFit).await
    {
        store.confirm_seen().await?;
    }
    outcome
}

async fn run(command: Command, selection: &Selection) -> anyhow::Result<Outcome> {
    let (named, store) = (selection.named_store(), || selection.store());
    match command {
        Command::Demo(args) => milepost_demo::run(&args, named).await,
        Command::DemoWorker(args) => {
            let address = named.cloned().unwrap_or_default();
            let programs = |worker, folder: &Path| work::kinds::serve_folder(worker, folder, &address);
            milepost_demo::work(args, &address, programs).await
        }
        Command::Doctor(args) => doctor::run(*args, &store()?).await,
        Command::Init(args) => init::run(args).await,
        Command::Migrate(args) => migrate::run(&store()?, &args).await,
        Command::Move(args) => relocation::run(*args).await,
        Command::Enqueue(args) => enqueue::run(*args, &store()?).await,
        Command::Jobs(command) => jobs::run(*command, &store()?).await,
        Command::Bulk(args) => bulk::run(*args, selection).await,
        Command::Batch(command) => batch::run(*command, selection).await,
        Command::Events(command) => events::run(*command, selection).await,
        Command::Inbox(command) => inbox::run(command, selection).await,
        Command::Queues(command) => queues::run(command, &store()?).await,
        Command::Schedules(command) => schedules::run(command, &store()?).await,
        Command::Limits(command) => limits::run(command, &store()?).await,
        Command::Alerts(command) => alerts::run(command, selection).await,
        Command::Retention(command) => retention::run(command, selection).await,
        Command::Report(command) => run_report(command, &store()?).await,
        Command::Tokens(command) => tokens::run(command, &store()?).await,
        Command::Daemon(command) => run_daemon(command, selection).await,
        Command::Config(command) => config::command::run(command, selection),
        Command::Prune(args) => prune::run(&args, selection).await,
        Command::Mcp(args) => milepost_mcp::run(&args).await,
        Command::Generated(command) => generated::run(command, Cli::command()),
        Command::Bench(command) => milepost_bench::run(command, &named.cloned().unwrap_or_default()).await,
    }
}

async fn run_report(command: ReportCommand, store: &StoreAddress) -> anyhow::Result<Outcome> {
    match command {
        ReportCommand::Status(args) => status::run(&args, store).await,
        ReportCommand::Workers(command) => workers::run(command, store).await,
        ReportCommand::Audit(args) => audit::run(&args, store).await,
    }
}

async fn run_daemon(command: DaemonCommand, selection: &Selection) -> anyhow::Result<Outcome> {
    match command {
        DaemonCommand::Work(args) => work::run(*args, selection).await,
        DaemonCommand::Relay(args) => relay::run(*args, selection).await,
        DaemonCommand::Serve(args) => serve::run(*args, selection).await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_command_that_has_ended_does_not_wait_for_a_computation() {
        let (release, held) = mpsc::channel::<()>();
        let ended = in_runtime(async move {
            tokio::task::spawn_blocking(move || held.recv());
            Ok(Outcome::Done)
        });
        assert!(matches!(ended, Ok(Outcome::Done)));
        drop(release);
    }
}
