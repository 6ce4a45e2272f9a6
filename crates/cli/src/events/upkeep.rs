//! `milepost events prune` and `reseed`.

use anyhow::Result;
use clap::Args;
use indicatif::HumanCount;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_core::duration::exact;
use milepost_core::format::several;
use milepost_core::port::Store;
use milepost_core::retention::Keep;

use crate::selection::Selection;

const PRUNE_HELP: &str = "\
Deletes only events that all subscriptions have processed. A subscription that
no relay publishes any more keeps the log until `milepost events forget`.
Parked events and dead letters are kept.

Examples:
  milepost events prune --keep 30d";

#[derive(Debug, Args)]
#[command(after_help = PRUNE_HELP)]
pub(crate) struct PruneArgs {
    /// The minimum age of deleted events [default: what the workers keep]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    keep: Option<Keep>,
    #[command(flatten)]
    reason: ReasonArgs,
}

const RESEED_HELP: &str = "\
After a database was restored from a dump, or copied to another server, its
transaction ids have a different meaning, and relays refuse to continue. This
command converts the positions to transaction ids of this server. Events around
the old positions are published again. All relays must be stopped.";

#[derive(Debug, Args)]
#[command(after_help = RESEED_HELP)]
pub(crate) struct ReseedArgs {
    /// Confirm the change
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(super) async fn prune(args: &PruneArgs, selection: &Selection, store: &dyn Store) -> Result<Outcome> {
    let keep = match args.keep {
        Some(keep) => keep,
        None => selection.retention(store).await?.events,
    };
    let Some(period) = keep.period() else {
        output::change("events are kept forever: nothing was deleted")?;
        return Ok(Outcome::Done);
    };
    let store = args.reason.acting(store)?;
    let mut pruned = 0;
    while let Some(portion) = store.prune_log(period).await? {
        pruned += portion;
    }
    let keep = exact(period);
    output::change(format_args!("{} events older than {keep} were deleted", HumanCount(pruned)))?;
    Ok(Outcome::Done)
}

pub(super) async fn reseed(args: &ReseedArgs, store: &dyn Store) -> Result<Outcome> {
    if !args.yes {
        output::note("nothing was changed: give --yes to adopt the log, which publishes some events again");
        return Ok(Outcome::WrongUsage);
    }
    let changed = args.reason.acting(store)?.reseed().await?;
    if changed == 0 {
        output::change("no change was needed")?;
        return Ok(Outcome::Done);
    }
    output::change(format_args!(
        "the positions of {} were converted to this server",
        several(changed, "subscription", "subscriptions")
    ))?;
    Ok(Outcome::Done)
}
