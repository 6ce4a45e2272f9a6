//! `milepost inbox list`, `gaps`, `set`, `expect` and `prune`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use indicatif::HumanCount;
use jiff::Timestamp;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_cli_support::{output, parsers};
use milepost_core::duration::exact;
use milepost_core::event::Aggregate;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::inbox::{Consumer, GapPolicy, PARKED_MAX_LIMIT};
use milepost_core::port::Store;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use serde_json::json;

use super::known;
use crate::selection::Selection;
use crate::time::relative;

/// The limits of pruning: 500 ids per transaction, and no pause in proportion to its duration.
const PACE: Pace = Pace { limit: 500, rest: 0 };
/// The pause after each transaction, which lets other writers proceed.
const PAUSE: Duration = Duration::from_millis(2);

const LIST_HELP: &str = "\
WAITING counts events that arrived early, DEAD dead letters, DUPLICATES events
that arrived again and had no effect. GAP WAIT is how long events wait for a
missing one, MOST how many of one aggregate may wait, ON GAP the action then.

Examples:
  milepost inbox list
  milepost inbox list --json";

#[derive(Debug, Args)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ListArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

const GAPS_HELP: &str = "\
MISSING is the sequence of the missing event. Gaps that expire first are listed
first.

Examples:
  milepost inbox gaps
  milepost inbox gaps billing --json";

#[derive(Debug, Args)]
#[command(after_help = GAPS_HELP)]
pub(crate) struct GapsArgs {
    /// Only of this consumer
    consumer: Option<String>,
    /// The maximum number of listed gaps
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

const SET_HELP: &str = "\
Omitted settings are not changed. An unknown consumer is created, with 10m,
1000 and dead_letter as defaults. Existing gaps keep their deadlines.

dead_letter: the waiting events become dead letters, and the consumer keeps
waiting; if the missing event arrives later, processing resumes automatically.
skip_gap: the consumer continues behind the gap.

Examples:
  milepost inbox set billing --gap-wait 1m --on-gap skip_gap
  milepost inbox set billing --parked-max 5000";

#[derive(Debug, Args)]
#[command(after_help = SET_HELP, group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct SetArgs {
    /// The consumer
    consumer: String,
    /// How long events wait for a missing earlier one
    #[arg(long, group = "what", value_name = "TIME", value_parser = parsers::duration)]
    gap_wait: Option<Duration>,
    /// The action after that time
    #[arg(long, group = "what", value_parser = gap_policy())]
    on_gap: Option<GapPolicy>,
    /// The maximum number of waiting events of an aggregate
    #[arg(long, group = "what", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(PARKED_MAX_LIMIT)))]
    parked_max: Option<u32>,
    /// Whether an aggregate may begin with any event
    #[arg(long, group = "what", value_name = "BOOL")]
    begins_anywhere: Option<bool>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object with the new settings
    #[arg(long)]
    json: bool,
}

const EXPECT_HELP: &str = "\
Earlier events are then treated as duplicates. Waiting events follow when the
consumer polls next, or with its next event. The position never moves back.

Examples:
  milepost inbox expect billing order/17 4";

#[derive(Debug, Args)]
#[command(after_help = EXPECT_HELP)]
pub(crate) struct ExpectArgs {
    /// The consumer
    consumer: String,
    /// The aggregate
    #[arg(value_name = "TYPE/ID")]
    aggregate: Aggregate,
    /// The sequence of the next event to process
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(i64).range(1..))]
    sequence: i64,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const PRUNE_HELP: &str = "\
Workers do this continuously, as configured by `[retention] inbox`. An event
that arrives again after its id was deleted counts as new: keep ids for longer
than a broker may redeliver. Positions of consumers, waiting events and dead
letters are kept.

Examples:
  milepost inbox prune --keep 30d";

#[derive(Debug, Args)]
#[command(after_help = PRUNE_HELP)]
pub(crate) struct PruneArgs {
    /// The minimum age of deleted ids [default: what the workers keep]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    keep: Option<Keep>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn gap_policy() -> impl TypedValueParser<Value = GapPolicy> {
    PossibleValuesParser::new(GapPolicy::ALL.iter().map(|policy| policy.as_str()))
        .try_map(|name| name.parse::<GapPolicy>())
}

pub(super) async fn list(args: &ListArgs, store: &dyn Store) -> Result<()> {
    let all = store.consumers().await?;
    if args.json {
        return output::json(&all);
    }
    if all.is_empty() {
        output::note("no consumer has processed an event");
        return Ok(());
    }
    let mut listing = Listing::new([
        Column::new("CONSUMER"),
        Column::unbroken("AGGREGATES"),
        Column::unbroken("WAITING"),
        Column::unbroken("DEAD"),
        Column::unbroken("DUPLICATES"),
        Column::unbroken("GAP WAIT"),
        Column::unbroken("MOST"),
        Column::unbroken("ON GAP"),
    ]);
    for view in &all {
        let Consumer { name, gap_wait, parked_max, gap_policy, .. } = &view.consumer;
        let count = |count: u64| Field::text(HumanCount(count).to_string());
        listing.row([
            Field::text(name),
            count(view.aggregates),
            count(view.parked),
            count(view.dead),
            count(view.duplicates),
            Field::text(exact(*gap_wait)),
            Field::text(parked_max.to_string()),
            Field::text(gap_policy.as_str()),
        ]);
    }
    listing.print()?;
    if all.iter().any(|view| view.parked > 0) {
        output::note("`milepost inbox gaps` lists the missing events");
    }
    if let Some(view) = all.iter().find(|view| view.dead > 0) {
        output::note(format_args!("`milepost inbox dead {}` lists the dead letters", view.consumer.name));
    }
    Ok(())
}

pub(super) async fn gaps(args: &GapsArgs, store: &dyn Store) -> Result<()> {
    if let Some(name) = &args.consumer {
        known(name, store).await?;
    }
    let gaps = store.gaps(args.consumer.as_deref(), None, args.limit).await?;
    if args.json {
        return output::json(&gaps);
    }
    if gaps.is_empty() {
        output::note("nothing is missing");
        let of = |view: &ConsumerView| args.consumer.as_ref().is_none_or(|name| *name == view.consumer.name);
        let waiting: u64 =
            store.consumers().await?.iter().filter(|view| of(view)).map(|view| view.parked).sum();
        if waiting > 0 {
            let (events, are) =
                (HumanCount(waiting), if waiting == 1 { "event that waits" } else { "events that wait" });
            output::note(format_args!(
                "{events} {are} can be processed now: the consumer must call next_parked after each event"
            ));
        }
        return Ok(());
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("CONSUMER"),
        Column::new("AGGREGATE"),
        Column::unbroken("MISSING"),
        Column::unbroken("WAITING"),
        Column::unbroken("DEADLINE"),
    ]);
    for gap in &gaps {
        listing.row([
            Field::text(&gap.consumer),
            Field::text(gap.aggregate.to_string()),
            Field::text(gap.missing.to_string()),
            Field::text(gap.parked.to_string()),
            Field::text(relative(gap.gives_up_at, now)),
        ]);
    }
    Ok(listing.print()?)
}

pub(super) async fn set(args: SetArgs, store: &dyn Store) -> Result<()> {
    let all = store.consumers().await?;
    let found = all.into_iter().map(|view| view.consumer).find(|consumer| consumer.name == args.consumer);
    let is_new = found.is_none();
    let stands = found.unwrap_or_else(|| Consumer::new(args.consumer));
    let consumer = Consumer {
        gap_wait: args.gap_wait.unwrap_or(stands.gap_wait),
        gap_policy: args.on_gap.unwrap_or(stands.gap_policy),
        parked_max: args.parked_max.unwrap_or(stands.parked_max),
        begins_anywhere: args.begins_anywhere.unwrap_or(stands.begins_anywhere),
        name: stands.name,
    };
    args.reason.acting(store)?.put_consumer(&consumer).await?;
    if args.json {
        return output::heard_or_not(output::json(&consumer));
    }
    let Consumer { name, gap_wait, parked_max, gap_policy, .. } = &consumer;
    let gap_wait = exact(*gap_wait);
    output::change(format_args!(
        "consumer {name}: events wait {gap_wait} for a missing one, at most {parked_max} per aggregate, then {gap_policy}"
    ))?;
    if is_new {
        output::note(format_args!("no event has been processed as {name} yet"));
    }
    Ok(())
}

pub(super) async fn expect(args: &ExpectArgs, store: &dyn Store) -> Result<()> {
    let ExpectArgs { consumer, aggregate, sequence, reason, json } = args;
    let changed = reason.acting(store)?.expect_from(consumer, aggregate, *sequence).await?;
    if *json {
        return output::heard_or_not(output::json(&json!({ "changed": changed })));
    }
    if !changed {
        bail!("{consumer} is past event {sequence} of {aggregate} already; positions never move back");
    }
    output::change(format_args!("{consumer} processes events of {aggregate} from {sequence} on"))
}

pub(super) async fn prune(args: &PruneArgs, selection: &Selection, store: &dyn Store) -> Result<()> {
    let keep = match args.keep {
        Some(keep) => keep,
        None => selection.retention(store).await?.inbox,
    };
    let policy = RetentionPolicy { inbox: keep, ..RetentionPolicy::FOREVER };
    policy.check()?;
    let store = args.reason.acting(store)?;
    let mut ids = 0;
    loop {
        let pruned = store.prune(&policy, PACE).await?;
        ids += pruned.what.inbox;
        if !pruned.more {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    if args.json {
        return output::heard_or_not(output::json(&json!({ "ids": ids })));
    }
    let Some(period) = keep.period() else {
        return output::change("ids are kept forever: nothing was deleted");
    };
    let keep = exact(period);
    output::change(format_args!(
        "{} ids of events processed more than {keep} ago were deleted",
        HumanCount(ids)
    ))
}
