//! `milepost schedules`: recurring jobs and batches.

mod add;
mod backfill;
mod list;
mod operate;
mod preview;
mod show;
mod spec;

use anyhow::Result;
use clap::Subcommand;
use milepost_cli_support::operator::help;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::actions::Action as _;
use milepost_core::actions::schedule::{ScheduleAction, ScheduleChange};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// List schedules with their last and next tick, and problems
    List(list::ListArgs),
    /// Show one schedule
    Show(show::ShowArgs),
    #[command(about = ScheduleChange::Create.description().summary)]
    Add(Box<add::AddArgs>),
    #[command(about = ScheduleChange::Remove.description().summary, after_help = "Examples:\n  milepost schedules remove nightly")]
    Remove(operate::ScheduleArgs),
    #[command(about = ScheduleAction::Pause.description().summary,
        after_help = help(ScheduleAction::Pause, "Examples:\n  milepost schedules pause nightly --reason maintenance"))]
    Pause(operate::ScheduleArgs),
    #[command(about = ScheduleAction::Resume.description().summary,
        after_help = help(ScheduleAction::Resume, "Examples:\n  milepost schedules resume nightly"))]
    Resume(operate::ScheduleArgs),
    #[command(about = ScheduleAction::RunNow.description().summary,
        after_help = help(ScheduleAction::RunNow, "Examples:\n  milepost schedules run-now nightly"))]
    RunNow(operate::RunNowArgs),
    /// Create the missing jobs or batches of past ticks, after a preview
    Backfill(backfill::BackfillArgs),
    /// Print the next ticks of a cron expression or an interval
    Preview(preview::PreviewArgs),
}

impl SchedulesCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Show(_) | Self::Preview(_))
    }
}

pub(crate) async fn run(command: SchedulesCommand, address: &StoreAddress) -> Result<Outcome> {
    let store = || store::open(address, Schema::MustFit);
    match command {
        SchedulesCommand::List(args) => list::run(&args, store().await?.as_ref()).await,
        SchedulesCommand::Show(args) => show::run(&args, store().await?.as_ref()).await,
        SchedulesCommand::Add(args) => add::run(*args, address).await,
        SchedulesCommand::Remove(args) => operate::remove(&args, store().await?.as_ref()).await,
        SchedulesCommand::Pause(args) => operate::pause(&args, store().await?.as_ref()).await,
        SchedulesCommand::Resume(args) => operate::resume(&args, store().await?.as_ref()).await,
        SchedulesCommand::RunNow(args) => operate::run_now(&args, store().await?.as_ref()).await,
        SchedulesCommand::Backfill(args) => backfill::run(args, store().await?.as_ref()).await,
        SchedulesCommand::Preview(args) => preview::run(&args),
    }
}
