//! `milepost events`: commands that emit and read events, and manage subscriptions.

mod emit;
mod parked;
mod subscriptions;
mod tail;
mod upkeep;

use anyhow::Result;
use clap::Subcommand;
use milepost_cli_support::operator::help;
use milepost_cli_support::output::Outcome;
use milepost_cli_support::store::{self, Schema};
use milepost_core::actions::Action as _;
use milepost_core::actions::parked::ParkedAction;
use milepost_core::actions::subscription::SubscriptionAction;

use crate::selection::Selection;

#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Write one event to the log
    Emit(emit::EmitArgs),
    /// Show the end of the log, optionally followed by new events
    Tail(tail::TailArgs),
    /// List subscriptions, their publishers and the state of their sinks
    Subscriptions(subscriptions::ListArgs),
    /// Show the lag of each subscription
    Lag(subscriptions::ListArgs),
    #[command(about = SubscriptionAction::Pause.description().summary,
        after_help = help(SubscriptionAction::Pause, "Examples:\n  milepost events pause orders --reason 'the broker moves'"))]
    Pause(subscriptions::SubscriptionArgs),
    #[command(about = SubscriptionAction::Resume.description().summary,
        after_help = help(SubscriptionAction::Resume, "Examples:\n  milepost events resume orders"))]
    Resume(subscriptions::SubscriptionArgs),
    /// Delete a subscription with its position in the log
    Forget(subscriptions::ForgetArgs),
    /// List parked aggregates, which wait because one of their events failed
    Parked(parked::ParkedArgs),
    #[command(about = ParkedAction::Retry.description().summary,
        after_help = help(ParkedAction::Retry, "Examples:\n  milepost events retry orders order/17"))]
    Retry(parked::Which),
    #[command(about = ParkedAction::Skip.description().summary,
        after_help = help(ParkedAction::Skip, "Examples:\n  milepost events skip orders order/17 --reason duplicate"))]
    Skip(parked::Which),
    #[command(about = ParkedAction::Edit.description().summary,
        after_help = help(ParkedAction::Edit, "Examples:\n  milepost events edit orders order/17 --payload '{}'"))]
    Edit(parked::EditArgs),
    /// List dead-lettered events, publish or delete one
    Dead(parked::DeadArgs),
    #[command(about = SubscriptionAction::Replay.description().summary)]
    Replay(parked::ReplayArgs),
    /// Delete old published events
    Prune(upkeep::PruneArgs),
    /// Adopt the log after the database was restored on another server
    Reseed(upkeep::ReseedArgs),
}

impl EventsCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::Tail(_) | Self::Subscriptions(_) | Self::Lag(_) | Self::Parked(_))
    }
}

pub(crate) async fn run(command: EventsCommand, selection: &Selection) -> Result<Outcome> {
    let address = &selection.store()?;
    if let EventsCommand::Emit(args) = command {
        let event = args.event()?;
        let store = store::open(address, Schema::MadeWhenEmpty).await?;
        return emit::run(&args, &event, store.as_ref()).await;
    }
    let store = store::open(address, Schema::MustFit).await?;
    let store = store.as_ref();
    match command {
        EventsCommand::Emit(_) => Ok(Outcome::Done),
        EventsCommand::Tail(args) => tail::run(args, store).await,
        EventsCommand::Subscriptions(args) => subscriptions::list(&args, store).await,
        EventsCommand::Lag(args) => subscriptions::lag(&args, store).await,
        EventsCommand::Pause(args) => subscriptions::pause(&args, store).await,
        EventsCommand::Resume(args) => subscriptions::resume(&args, store).await,
        EventsCommand::Forget(args) => subscriptions::forget(&args, store).await,
        EventsCommand::Parked(args) => parked::parked(&args, store).await,
        EventsCommand::Retry(which) => parked::change(which, ParkedAction::Retry, None, store).await,
        EventsCommand::Skip(which) => parked::change(which, ParkedAction::Skip, None, store).await,
        EventsCommand::Edit(args) => parked::edit(args, store).await,
        EventsCommand::Dead(args) => parked::dead(&args, store).await,
        EventsCommand::Replay(args) => parked::replay(args, store).await,
        EventsCommand::Prune(args) => upkeep::prune(&args, selection, store).await,
        EventsCommand::Reseed(args) => upkeep::reseed(&args, store).await,
    }
}
