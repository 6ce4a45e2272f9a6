//! `milepost jobs`: look at jobs and intervene.

mod list;
mod operate;
mod pretty;
mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::output::Outcome;
use crate::store::{self, Schema, StoreAddress};

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(list::ListArgs),
    /// Show everything about one job: why it waits, what happened, its payload and result
    Show(show::ShowArgs),
    /// Give jobs up for good
    Cancel(operate::CancelArgs),
    /// Let failed, retrying or aborted jobs run again now
    Retry(operate::RetryArgs),
    /// Let waiting jobs wait longer
    Snooze(operate::SnoozeArgs),
}

pub(crate) async fn run(command: JobsCommand, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    let store = store.as_ref();
    match command {
        JobsCommand::List(args) => list::run(args, store).await,
        JobsCommand::Show(args) => show::run(args, store).await,
        JobsCommand::Cancel(args) => operate::cancel(args, store).await,
        JobsCommand::Retry(args) => operate::retry(args, store).await,
        JobsCommand::Snooze(args) => operate::snooze(args, store).await,
    }
}
