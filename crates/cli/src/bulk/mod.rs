//! `milepost bulk`: commands that start, list, show and control bulk jobs.

pub(crate) mod assemble;
mod dry_run;
mod failures;
mod list;
mod operate;
mod parameters;
mod set;
mod show;
mod sources;
mod staged;
mod start;
mod watch;
mod words;

use anyhow::Result;
use clap::{Args, Subcommand};
use milepost_cli_support::operator::{self, help};
use milepost_cli_support::output::Outcome;
use milepost_core::actions::Action as _;
use milepost_core::actions::bulk_run::{RunAction, RunChange};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::Store;

use self::sources::Scene;
use crate::selection::Selection;

#[derive(Debug, Args)]
pub(crate) struct BulkArgs {
    #[command(subcommand)]
    command: BulkCommand,
}

#[derive(Debug, Subcommand)]
enum BulkCommand {
    /// Start a bulk job
    Start(Box<start::StartArgs>),
    /// List runs of bulk jobs with their progress and their order
    List(list::ListArgs),
    /// Show the details of a run
    Show(show::ShowArgs),
    /// Follow a run until it ends; exit status 1 if it did not succeed
    Watch(watch::WatchArgs),
    #[command(about = RunAction::Abort.description().summary, after_help = operate::abort_help())]
    Abort(operate::AbortArgs),
    #[command(about = RunAction::Resume.description().summary, after_help = help(RunAction::Resume, operate::RESUME_EXAMPLES))]
    Resume(operate::ChangeArgs),
    #[command(about = RunAction::Cancel.description().summary, after_help = help(RunAction::Cancel, operate::CANCEL_EXAMPLES))]
    Cancel(operate::ChangeArgs),
    #[command(about = RunChange::Set.description().summary, after_help = help(RunChange::Set, set::EXAMPLES))]
    Set(set::SetArgs),
    /// List the failed targets of a run
    Failures(failures::FailuresArgs),
    #[command(about = RunChange::RetryFailures.description().summary, after_help = help(RunChange::RetryFailures, failures::RETRY_EXAMPLES))]
    RetryFailures(failures::RetryArgs),
    /// Execute a few chunks, roll them back, and estimate the cost of a run
    DryRun(Box<dry_run::DryRunArgs>),
}

impl BulkArgs {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self.command, BulkCommand::List(_) | BulkCommand::Show(_) | BulkCommand::Failures(_))
    }
}

pub(crate) async fn run(args: BulkArgs, selection: &Selection) -> Result<Outcome> {
    let scene = match &args.command {
        BulkCommand::Start(_) | BulkCommand::DryRun(_) => Scene::read(selection)?,
        _ => Scene::glance(selection)?,
    };
    let database = scene.open().await?;
    let store = operator::acting(database.store().as_ref())?;
    let store = store.as_ref();
    match args.command {
        BulkCommand::Start(args) => start::run(*args, &scene, store).await,
        BulkCommand::List(args) => list::run(args, store).await,
        BulkCommand::Show(args) => show::run(&args, store).await,
        BulkCommand::Watch(args) => watch::run(&args, store).await,
        BulkCommand::Abort(args) => operate::abort(args, &scene, &database, store).await,
        BulkCommand::Resume(args) => operate::resume(args, store).await,
        BulkCommand::Cancel(args) => operate::cancel(args, store).await,
        BulkCommand::Set(args) => set::run(args, store).await,
        BulkCommand::Failures(args) => failures::list(&args, store).await,
        BulkCommand::RetryFailures(args) => failures::retry(args, store).await,
        BulkCommand::DryRun(args) => dry_run::run(*args, scene, &database).await,
    }
}

/// Returns the run with this id.
async fn view(id: JobId, store: &dyn Store) -> Result<BulkView> {
    let filter = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
    match store.bulks(&filter).await?.pop() {
        Some(view) => Ok(view),
        None if store.job(id).await?.is_some() => {
            Err(StoreError::from(InvalidBulk::NotBulk { job: id }).into())
        }
        None => Err(StoreError::NoSuchJob(id).into()),
    }
}
