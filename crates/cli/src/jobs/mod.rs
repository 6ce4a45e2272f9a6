//! `milepost jobs`: commands that list, show and change jobs.

mod list;
mod operate;
mod show;

use anyhow::Result;
use clap::Subcommand;
use milepost_core::transition::Verb;

pub(crate) use self::operate::{Reports, operate};
pub(crate) use self::show::{print_json, print_timeline, why};
use crate::output::Outcome;
use crate::store::{self, Schema, StoreAddress};

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(list::ListArgs),
    /// Show one job: why it waits, its history, payload and result
    Show(show::ShowArgs),
    /// Cancel jobs permanently
    #[command(after_help = operate::CANCEL_HELP)]
    Cancel(operate::StopArgs),
    /// Stop jobs so that they can be resumed
    #[command(after_help = operate::ABORT_HELP)]
    Abort(operate::StopArgs),
    /// Resume aborted jobs from their last checkpoints
    #[command(after_help = operate::RESUME_HELP)]
    Resume(operate::ChangeArgs),
    /// Run failed, retrying or aborted jobs again now
    #[command(after_help = operate::RETRY_HELP)]
    Retry(operate::ChangeArgs),
    /// Run ended jobs again, from the start
    #[command(after_help = operate::RERUN_HELP)]
    Rerun(operate::ChangeArgs),
    /// Delay waiting jobs
    #[command(after_help = operate::SNOOZE_HELP)]
    Snooze(operate::SnoozeArgs),
    /// Skip waiting jobs
    #[command(after_help = operate::SKIP_HELP)]
    Skip(operate::ChangeArgs),
    /// Mark jobs that were done manually as succeeded
    #[command(after_help = operate::MARK_HELP)]
    Mark(operate::ChangeArgs),
    /// Release blocked jobs, which then no longer wait for others
    #[command(after_help = operate::RELEASE_HELP)]
    Release(operate::ChangeArgs),
}

impl JobsCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Show(_))
    }
}

pub(crate) async fn run(command: JobsCommand, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    let store = store.as_ref();
    match command {
        JobsCommand::List(args) => list::run(args, store).await,
        JobsCommand::Show(args) => show::run(args, store).await,
        JobsCommand::Cancel(args) => operate::stop(Verb::Cancel, args, store).await,
        JobsCommand::Abort(args) => operate::stop(Verb::Abort, args, store).await,
        JobsCommand::Resume(args) => operate::change(Verb::Resume, args, store).await,
        JobsCommand::Retry(args) => operate::retry(args, store).await,
        JobsCommand::Rerun(args) => operate::change(Verb::Rerun, args, store).await,
        JobsCommand::Snooze(args) => operate::snooze(args, store).await,
        JobsCommand::Skip(args) => operate::change(Verb::Skip, args, store).await,
        JobsCommand::Mark(args) => operate::change(Verb::Mark, args, store).await,
        JobsCommand::Release(args) => operate::change(Verb::Release, args, store).await,
    }
}
