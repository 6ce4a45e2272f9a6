//! `milepost jobs`: commands that list, show and change jobs.

mod edit;
mod filter;
mod list;
mod operate;
mod show;

use anyhow::Result;
use clap::Subcommand;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{self, Schema, StoreAddress};

pub(crate) use self::operate::{Reports, operate};
pub(crate) use self::show::{print_json, print_timeline, why};

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(list::ListArgs),
    /// Show one job: why it waits, its history, payload and result
    Show(show::ShowArgs),
    /// Change the payload or the options of jobs that wait or have failed
    Edit(edit::EditArgs),
    #[command(flatten)]
    Operate(operate::OperateCommand),
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
        JobsCommand::Edit(args) => edit::run(args, store).await,
        JobsCommand::Operate(command) => command.run(store).await,
    }
}
