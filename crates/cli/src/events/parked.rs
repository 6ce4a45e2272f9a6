//! `milepost events parked`, `retry`, `skip`, `edit`, `dead` and `replay`.

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use indicatif::HumanCount;
use jiff::Timestamp;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::past_time;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::dead_letter::DeadEventAction;
use milepost_core::actions::parked::ParkedAction;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::{EventFilter, EventPage, LoggedEvent};
use milepost_core::event::relay_listing::{ParkedView, Replay};
use milepost_core::ident::EventId;
use milepost_core::port::{PARKED_CHANGED_MAX, Store};

use super::subscriptions::known;
use super::tail::on_one_line;
use crate::time::relative;

#[derive(Debug, Args)]
pub(crate) struct ParkedArgs {
    /// Only of this subscription
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
    /// The maximum number of listed rows
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Which parked aggregates are meant.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The subscription
    subscription: String,
    /// The parked aggregate
    #[arg(value_name = "TYPE/ID", required_unless_present = "all")]
    aggregate: Option<Aggregate>,
    /// All parked aggregates
    #[arg(long, conflicts_with = "aggregate")]
    all: bool,
    /// Only if this is its first parked event
    #[arg(long, value_name = "EVENT_ID", requires = "aggregate", conflicts_with = "all")]
    event: Option<EventId>,
    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The subscription
    subscription: String,
    /// The parked aggregate
    #[arg(value_name = "TYPE/ID")]
    aggregate: Aggregate,
    /// Only if this is its first parked event
    #[arg(long, value_name = "EVENT_ID")]
    event: Option<EventId>,
    /// The new payload of its first event, as JSON
    #[arg(long, value_name = "JSON")]
    payload: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

const DEAD_HELP: &str = "\
Without --retry and --drop, the command lists dead letters. A retried dead
letter is published now; later events of its aggregate may have been published
before it.

Examples:
  milepost events dead
  milepost events dead --subscription orders --retry 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

#[derive(Debug, Args)]
#[command(after_help = DEAD_HELP)]
pub(crate) struct DeadArgs {
    #[command(flatten)]
    list: ParkedArgs,
    /// Publish this event now
    #[arg(long, value_name = "EVENT_ID", conflicts_with_all = ["drop", "json"], requires = "subscription")]
    retry: Option<EventId>,
    /// Delete this event
    #[arg(long, value_name = "EVENT_ID", conflicts_with = "json", requires = "subscription")]
    drop: Option<EventId>,
    #[command(flatten)]
    reason: ReasonArgs,
}

const REPLAY_HELP: &str = "\
Consumers receive these events again, with the same ids; consumers that record
processed ids ignore them. Events are published in the order of each aggregate.
The payload is the one that was emitted, also of an event that was edited while
it was parked.

Examples:
  milepost events replay orders --aggregate order/17 --from-seq 3
  milepost events replay orders --since 2h";

#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP, group = ArgGroup::new("which").required(true).args(["aggregate", "since"]))]
pub(crate) struct ReplayArgs {
    /// The subscription
    subscription: String,
    /// The events of this aggregate
    #[arg(long, value_name = "TYPE/ID")]
    aggregate: Option<Aggregate>,
    /// The first sequence to publish again
    #[arg(long, value_name = "N", default_value_t = 1, requires = "aggregate", value_parser = clap::value_parser!(i64).range(1..))]
    from_seq: i64,
    /// Events emitted since a time (2026-11-22T08:00:00Z) or a duration ago (2h)
    #[arg(long, value_name = "T", value_parser = past_time)]
    since: Option<Timestamp>,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(super) async fn parked(args: &ParkedArgs, store: &dyn Store) -> Result<Outcome> {
    if let Some(name) = &args.subscription {
        known(name, store).await?;
    }
    let parked = store.parked(args.subscription.as_deref(), None, args.limit).await?;
    if args.json {
        output::json(&parked)?;
        return Ok(Outcome::Done);
    }
    if parked.is_empty() {
        output::note("nothing is parked");
        return Ok(Outcome::Done);
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("SUBSCRIPTION"),
        Column::new("AGGREGATE"),
        Column::unbroken("SEQ"),
        Column::unbroken("EVENTS"),
        Column::unbroken("TRIED"),
        Column::unbroken("NEXT"),
        Column::unbroken("SINCE"),
        Column::new("WHY"),
    ]);
    for of in &parked {
        listing.row([
            Field::text(&of.subscription),
            Field::text(of.first.aggregate.to_string()),
            Field::text(of.first.sequence.to_string()),
            Field::text(of.events.to_string()),
            Field::text(of.deliveries.to_string()),
            Field::text(next(of, now)),
            Field::text(relative(of.parked_at, now)),
            Field::text(on_one_line(&of.why)),
        ]);
    }
    listing.print()?;
    if let Some(of) = parked.iter().find(|of| of.next_delivery_at.is_none()) {
        let (name, aggregate) = (&of.subscription, &of.first.aggregate);
        output::note(format_args!(
            "halted aggregates wait for an operator: `milepost events retry {name} {aggregate}`, or `edit` or `skip`"
        ));
    }
    Ok(Outcome::Done)
}

fn next(of: &ParkedView, now: Timestamp) -> String {
    of.next_delivery_at.map_or_else(|| "halted".to_owned(), |at| relative(at, now))
}

pub(super) async fn change(
    which: Which,
    action: ParkedAction,
    payload: Option<&str>,
    store: &dyn Store,
) -> Result<Outcome> {
    let name = &which.subscription;
    let verb = action.verb(payload).context("--payload cannot be used")?;
    known(name, store).await?;
    let store = which.reason.acting(store)?;
    let changed = match which.aggregate {
        Some(aggregate) => {
            store.change_parked(name, &aggregate, which.event, &verb).await?;
            vec![(aggregate, true)]
        }
        None => store.change_all_parked(name, &verb).await?,
    };
    if changed.is_empty() {
        output::note("nothing is parked");
    }
    for (aggregate, is_changed) in &changed {
        if *is_changed {
            output::change(format_args!("{aggregate}  {}", action.result()))?;
        } else {
            output::note(format_args!("{aggregate}  not changed: its first parked event is another one now"));
        }
    }
    if changed.len() >= PARKED_CHANGED_MAX {
        output::note("there may be more; run the command again");
    }
    Ok(Outcome::Done)
}

pub(super) async fn edit(args: EditArgs, store: &dyn Store) -> Result<Outcome> {
    let EditArgs { subscription, aggregate, event, payload, reason } = args;
    let which = Which { subscription, aggregate: Some(aggregate), all: false, event, reason };
    change(which, ParkedAction::Edit, Some(&payload), store).await
}

pub(super) async fn dead(args: &DeadArgs, store: &dyn Store) -> Result<Outcome> {
    if let Some(name) = &args.list.subscription {
        known(name, store).await?;
        let (event, action) = match (args.retry, args.drop) {
            (Some(event), _) => (event, DeadEventAction::Retry),
            (_, Some(event)) => (event, DeadEventAction::Drop),
            _ => return list_dead(args, store).await,
        };
        args.reason.acting(store)?.change_dead(name, event, action.verb()).await?;
        output::change(format_args!("{event}  {}", action.result()))?;
        return Ok(Outcome::Done);
    }
    list_dead(args, store).await
}

async fn list_dead(args: &DeadArgs, store: &dyn Store) -> Result<Outcome> {
    let dead = store.dead_events(args.list.subscription.as_deref(), None, args.list.limit).await?;
    if args.list.json {
        output::json(&dead)?;
        return Ok(Outcome::Done);
    }
    if dead.is_empty() {
        output::note("no dead letters");
        return Ok(Outcome::Done);
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("SUBSCRIPTION"),
        Column::unbroken("EVENT"),
        Column::new("AGGREGATE"),
        Column::unbroken("SEQ"),
        Column::unbroken("TRIED"),
        Column::unbroken("DEAD"),
        Column::new("WHY"),
    ]);
    for of in &dead {
        let why = if of.skipped { format!("skipped: {}", of.why) } else { of.why.clone() };
        listing.row([
            Field::text(&of.subscription),
            Field::text(of.event.id.to_string()),
            Field::text(of.event.aggregate.to_string()),
            Field::text(of.event.sequence.to_string()),
            Field::text(of.deliveries.to_string()),
            Field::text(relative(of.dead_at, now)),
            Field::text(on_one_line(&why)),
        ]);
    }
    listing.print()?;
    Ok(Outcome::Done)
}

pub(super) async fn replay(args: ReplayArgs, store: &dyn Store) -> Result<Outcome> {
    known(&args.subscription, store).await?;
    let replay = match (args.aggregate, args.since) {
        (Some(aggregate), _) => Replay::Aggregate { aggregate, from: args.from_seq },
        (None, Some(since)) => {
            tell_what_is_gone(since, store).await?;
            Replay::Since(since)
        }
        (None, None) => bail!("give --aggregate TYPE/ID or --since TIME"),
    };
    let again = args.reason.acting(store)?.replay(&args.subscription, &replay).await?;
    let (events, them) = match again {
        1 => ("1 event is".to_owned(), "it"),
        _ => (format!("{} events are", HumanCount(again)), "them"),
    };
    output::change(format_args!("{events} published again, if the filter selects {them}"))?;
    Ok(Outcome::Done)
}

/// Prints the time of the oldest event, if events before that time were requested.
async fn tell_what_is_gone(since: Timestamp, store: &dyn Store) -> Result<()> {
    let first = EventFilter { page: EventPage::After(0), limit: 1, ..EventFilter::default() };
    let first = store.events(&first).await?.pop();
    if let Some(LoggedEvent { event, .. }) = first.filter(|first| first.event.emitted_at > since) {
        output::note(format_args!("the oldest event of the log was emitted at {:.0}", event.emitted_at));
    }
    Ok(())
}
