//! `milepost limits`: start rates of kinds, and start rates and concurrency of groups.

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use milepost_cli_support::operator::{self, ReasonArgs, help};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::Action as _;
use milepost_core::actions::limit::LimitAction;
use milepost_core::limit::{Limit, LimitView, Rate, SLOTS_MAX, Source, Target};
use milepost_core::port::Store;
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// List limits with available tokens, used slots and waiting jobs
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    #[command(about = LimitAction::Set.description().summary, after_help = SET_EXAMPLES)]
    Set(SetArgs),
    #[command(about = LimitAction::Remove.description().summary, after_help = help(LimitAction::Remove, REMOVE_EXAMPLES))]
    Remove(TargetArgs),
}

impl LimitsCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

const LIST_EXAMPLES: &str = "\
TOKENS is the number of jobs that may start at once now; groups of a class are
counted separately. TAKEN is the number of jobs of a group that hold a slot, or
of a kind that run.

Examples:
  milepost limits list
  milepost limits list --json";

const SET_EXAMPLES: &str = "\
A group without a limit runs one job at a time; a group that only has a rate,
any number. A class prefix:* applies to each group whose name starts with
prefix: and that has no separate limit. The complete limit is replaced.

Examples:
  milepost limits set --kind mail --rate 10/s --burst 20
  milepost limits set --group reports --concurrency 3
  milepost limits set --group 'tenant:*' --concurrency 3 --rate 100/m";

const REMOVE_EXAMPLES: &str = "\
Examples:
  milepost limits remove --kind mail
  milepost limits remove --group 'tenant:*'";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true))]
pub(crate) struct TargetArgs {
    /// The kind
    #[arg(long, group = "target")]
    kind: Option<String>,
    /// The group, or a class of groups: prefix:*
    #[arg(long, group = "target")]
    group: Option<String>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("limit").required(true).multiple(true))]
pub(crate) struct SetArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The maximum number of jobs of the group that run at the same time
    #[arg(long, group = "limit", conflicts_with = "kind", value_name = "JOBS",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    concurrency: Option<u32>,
    /// The maximum rate of starts: 10/s, 100/m, 2000/h, 5/d, 0.5/s or 7/15m
    #[arg(long, group = "limit", value_name = "N/TIME", value_parser = per_second)]
    rate: Option<f64>,
    /// The number of jobs that may start at once after a pause [default: that of one second, at least 1]
    #[arg(long, requires = "rate", value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst: Option<u32>,
}

fn per_second(text: &str) -> Result<f64, String> {
    Rate::parse_per_second(text).map_err(|e| e.to_string())
}

impl TargetArgs {
    fn target(self) -> Target {
        match (self.kind, self.group) {
            (Some(kind), _) => Target::Kind(kind),
            (None, group) => Target::Group(group.unwrap_or_default()),
        }
    }
}

impl SetArgs {
    fn limit(self) -> Limit {
        let rate = self.rate.map(|per_second| {
            let steady = Rate::steady(per_second);
            Rate { burst: self.burst.unwrap_or(steady.burst), ..steady }
        });
        Limit { target: self.target.target(), slots: self.concurrency, rate }
    }
}

pub(crate) async fn run(command: LimitsCommand, address: &StoreAddress) -> Result<Outcome> {
    match command {
        LimitsCommand::List { json } => {
            list(&store::open(address, Schema::MustFit).await?.limits().await?, json)?;
        }
        LimitsCommand::Set(args) => set(args, address).await?,
        LimitsCommand::Remove(args) => remove(args, address).await?,
    }
    Ok(Outcome::Done)
}

async fn set(args: SetArgs, address: &StoreAddress) -> Result<()> {
    let (json, reason) = (args.target.json, args.target.reason.reason.clone());
    let limit = args.limit();
    // Checked before the store is opened, because opening may create it.
    limit.check()?;
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let configured = is_configured(store.as_ref(), &limit.target).await?;
    operator::acting_because(store.as_ref(), reason.as_deref())?.put_limit(&limit, Source::Operator).await?;
    if configured {
        output::note(format_args!(
            "{} was limited by a configuration, which is ignored until you remove this limit",
            limit.target
        ));
    }
    if json { output::heard_or_not(output::json(&limit)) } else { output::change(said(&limit)) }
}

/// Returns whether the limit was set by a configuration.
async fn is_configured(store: &dyn Store, target: &Target) -> Result<bool> {
    let limits = store.limits().await?;
    Ok(limits.iter().any(|view| view.limit.target == *target && view.source == Source::Config))
}

async fn remove(args: TargetArgs, address: &StoreAddress) -> Result<()> {
    let (json, reason) = (args.json, args.reason.reason.clone());
    let target = args.target();
    let store = store::open(address, Schema::MustFit).await?;
    if is_configured(store.as_ref(), &target).await? {
        bail!(
            "the limit of {target} comes from a configuration, which would set it again; remove it there, or replace \
             it (`milepost limits set`) until you remove the new one"
        );
    }
    let store = operator::acting_because(store.as_ref(), reason.as_deref())?;
    let removed = store.remove_limit(&target, Source::Operator).await?;
    if json {
        return output::heard_or_not(output::json(&Removed { target: &target, removed }));
    }
    let words = if removed { "has no limit any more" } else { "had no limit" };
    output::change(format_args!("{target} {words}"))
}

#[derive(Serialize)]
struct Removed<'a> {
    #[serde(flatten)]
    target: &'a Target,
    removed: bool,
}

/// Describes the limit in a sentence.
fn said(limit: &Limit) -> String {
    let slots = limit.slots.map(|slots| format!("{slots} at once"));
    let rate = limit.rate.map(|rate| format!("{rate} with a burst of {}", rate.burst));
    let limits: Vec<String> = slots.into_iter().chain(rate).collect();
    format!("{} is limited to {}", limit.target, limits.join(" and "))
}

fn list(limits: &[LimitView], json: bool) -> Result<()> {
    if json {
        return output::json(&limits);
    }
    if limits.is_empty() {
        output::note("there are no limits; a group runs one job at a time");
        return Ok(());
    }
    let mut listing = Listing::new([
        Column::unbroken("OF"),
        Column::new("NAME"),
        Column::unbroken("SLOTS"),
        Column::unbroken("RATE"),
        Column::unbroken("BURST"),
        Column::unbroken("TOKENS"),
        Column::unbroken("TAKEN"),
        Column::unbroken("WAITING"),
        Column::unbroken("SET BY"),
    ]);
    for view in limits {
        let Limit { target, slots, rate } = &view.limit;
        let of = if matches!(target, Target::Kind(_)) { "kind" } else { "group" };
        listing.row([
            Field::text(of),
            Field::text(target.name()),
            Field::maybe(slots.map(|slots| slots.to_string())),
            Field::maybe(rate.map(|rate| rate.to_string())),
            Field::maybe(rate.map(|rate| rate.burst.to_string())),
            tokens(view.tokens),
            Field::text(view.holders.to_string()),
            Field::text(view.waiting.to_string()),
            Field::text(view.source.as_str()),
        ]);
    }
    Ok(listing.print()?)
}

fn tokens(tokens: Option<f64>) -> Field {
    match tokens {
        Some(tokens) if tokens < 1.0 => Field::warning(format!("{tokens:.1}")),
        Some(tokens) => Field::text(format!("{:.0}", tokens.floor())),
        None => Field::text(""),
    }
}
