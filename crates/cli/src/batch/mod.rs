//! `milepost batch`: commands that define DAGs, and start, list, show and control batches.

mod define;
pub(crate) mod file;
mod find;
mod graph;
mod list;
mod operate;
mod plan;
mod rerun;
mod show;
mod signal;
mod start;
mod tasks;
mod versions;
mod watch;
mod words;

use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;
use milepost_cli_support::operator::help;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{self, Schema};
use milepost_core::actions::Action as _;
use milepost_core::actions::batch::{BatchAction, WaitAction};
use milepost_core::port::Store;

use crate::selection::Selection;

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Store versions of DAGs from files, or only check them
    Define(define::DefineArgs),
    /// List batches, newest first, or DAGs
    List(list::ListArgs),
    /// List the versions of a DAG, newest first
    Versions(versions::VersionsArgs),
    /// Start a batch of a DAG
    Start(start::StartArgs),
    /// Show one batch: progress, tasks that it waits for, possible actions
    Show(show::ShowArgs),
    /// Draw a DAG, or a batch with its tasks colored by state
    Graph(graph::GraphArgs),
    /// Follow a batch until it ends; exit status 1 if it is not done
    Watch(watch::WatchArgs),
    #[command(flatten)]
    Change(ChangeCommand),
}

// The commands that change a batch. No doc comment: it would be the help text of `milepost batch`.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangeCommand {
    #[command(about = BatchAction::Rerun.description().summary)]
    Rerun(rerun::RerunArgs),
    #[command(about = BatchAction::Abort.description().summary, after_help = help(BatchAction::Abort, operate::ABORT_EXAMPLES))]
    Abort(operate::StopArgs),
    #[command(about = BatchAction::Resume.description().summary, after_help = help(BatchAction::Resume, operate::RESUME_EXAMPLES))]
    Resume(operate::ResumeArgs),
    #[command(about = BatchAction::Cancel.description().summary, after_help = help(BatchAction::Cancel, operate::CANCEL_EXAMPLES))]
    Cancel(operate::CancelArgs),
    #[command(about = BatchAction::Mark.description().summary, after_help = help(BatchAction::Mark, operate::MARK_EXAMPLES))]
    Mark(operate::MarkArgs),
    #[command(about = WaitAction::Signal.description().summary, after_help = help(WaitAction::Signal, signal::EXAMPLES))]
    Signal(signal::SignalArgs),
}

impl BatchCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Versions(_) | Self::Show(_) | Self::Graph(_))
    }
}

pub(crate) async fn run(command: BatchCommand, selection: &Selection) -> Result<Outcome> {
    match command {
        BatchCommand::Define(args) => define::run(args, selection).await,
        BatchCommand::Graph(args) => graph::run(&args, selection).await,
        BatchCommand::List(args) => list::run(args, stored(selection).await?.as_ref()).await,
        BatchCommand::Versions(args) => versions::run(&args, stored(selection).await?.as_ref()).await,
        BatchCommand::Start(args) => start::run(args, stored(selection).await?.as_ref()).await,
        BatchCommand::Show(args) => show::run(&args, stored(selection).await?.as_ref()).await,
        BatchCommand::Watch(args) => watch::run(&args, stored(selection).await?.as_ref()).await,
        BatchCommand::Change(command) => change(command, stored(selection).await?.as_ref()).await,
    }
}

async fn change(command: ChangeCommand, store: &dyn Store) -> Result<Outcome> {
    match command {
        ChangeCommand::Rerun(args) => rerun::run(args, store).await,
        ChangeCommand::Abort(args) => operate::abort(args, store).await,
        ChangeCommand::Resume(args) => operate::resume(args, store).await,
        ChangeCommand::Cancel(args) => operate::cancel(args, store).await,
        ChangeCommand::Mark(args) => operate::mark(args, store).await,
        ChangeCommand::Signal(args) => signal::run(args, store).await,
    }
}

/// Opens the store of batches, whose tables must exist.
async fn stored(selection: &Selection) -> Result<Arc<dyn Store>> {
    open(selection, Schema::MustFit).await
}

/// Opens the store of batches; depending on `schema`, its tables must exist or are created.
async fn open(selection: &Selection, schema: Schema) -> Result<Arc<dyn Store>> {
    store::open(&selection.store()?, schema).await
}
