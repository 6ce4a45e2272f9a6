//! `milepost events subscriptions`, `lag`, `pause`, `resume` and `forget`.

use anyhow::{Result, bail};
use clap::Args;
use indicatif::HumanCount;
use jiff::Timestamp;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::port::Store;

use crate::time::relative;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubscriptionArgs {
    /// The subscription's name
    name: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The subscription's name
    name: String,
    /// Delete it despite parked aggregates or dead letters
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reason: ReasonArgs,
}

/// Returns all subscriptions, unless there is no table to print: because they were printed as JSON, or because there are none.
async fn to_show(args: &ListArgs, store: &dyn Store) -> Result<Vec<SubscriptionView>> {
    let all = store.subscriptions().await?;
    if args.json {
        output::json(&all)?;
        return Ok(Vec::new());
    }
    if all.is_empty() {
        output::note("no subscriptions; `milepost relay` creates those of its configuration");
    }
    Ok(all)
}

/// Runs `milepost events subscriptions`, which lists subscriptions and their publishers.
pub(super) async fn list(args: &ListArgs, store: &dyn Store) -> Result<Outcome> {
    let all = to_show(args, store).await?;
    if all.is_empty() {
        return Ok(Outcome::Done);
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("SUBSCRIPTION"),
        Column::new("STATE"),
        Column::new("PUBLISHER"),
        Column::unbroken("SLOTS"),
        Column::unbroken("TOKEN"),
        Column::unbroken("SINCE"),
        Column::new("SINK"),
    ]);
    for subscription in &all {
        let state = state(subscription);
        if subscription.publishers.is_empty() {
            let nobody = [&subscription.name, &state, "nobody", "0", "", "", ""].map(Field::text);
            listing.row(nobody);
        }
        for publisher in &subscription.publishers {
            listing.row([
                Field::text(&subscription.name),
                Field::text(&state),
                Field::text(&publisher.label),
                Field::text(publisher.slots.to_string()),
                Field::text(publisher.token.map(|token| token.to_string()).unwrap_or_default()),
                Field::text(relative(publisher.started_at, now)),
                Field::text(match (publisher.down_since, &publisher.down_why) {
                    (Some(_), _) if !subscription.is_down(publisher) => "not tried".to_owned(),
                    (Some(since), why) => {
                        format!("down since {}: {}", relative(since, now), why.as_deref().unwrap_or_default())
                    }
                    _ => "up".to_owned(),
                }),
            ]);
        }
    }
    listing.print()?;
    Ok(Outcome::Done)
}

fn state(subscription: &SubscriptionView) -> String {
    match &subscription.paused_why {
        _ if subscription.reseed_needed => "stopped: needs `milepost events reseed`".to_owned(),
        Some(why) => format!("paused: {why}"),
        None => subscription.state().to_owned(),
    }
}

/// Runs `milepost events lag`, which shows the lag of each subscription.
pub(super) async fn lag(args: &ListArgs, store: &dyn Store) -> Result<Outcome> {
    let all = to_show(args, store).await?;
    if all.is_empty() {
        return Ok(Outcome::Done);
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("SUBSCRIPTION"),
        Column::unbroken("BACKLOG"),
        Column::unbroken("OLDEST"),
        Column::unbroken("PARKED"),
        Column::unbroken("HALTED"),
        Column::unbroken("DEAD"),
        Column::new("STATE"),
    ]);
    for subscription in &all {
        listing.row([
            Field::text(&subscription.name),
            Field::text(HumanCount(subscription.backlog.unsigned_abs()).to_string()),
            Field::text(subscription.oldest_at.map(|at| relative(at, now)).unwrap_or_default()),
            Field::text(subscription.parked_aggregates.to_string()),
            Field::text(subscription.halted_aggregates.to_string()),
            Field::text(subscription.dead.to_string()),
            Field::text(state(subscription)),
        ]);
    }
    listing.print()?;
    if all.iter().any(|subscription| subscription.parked_aggregates > 0) {
        output::note("`milepost events parked` lists parked aggregates with the cause");
    }
    Ok(Outcome::Done)
}

pub(super) async fn pause(args: &SubscriptionArgs, store: &dyn Store) -> Result<Outcome> {
    let found = known(&args.name, store).await?;
    let reason = args.reason.reason.as_deref();
    let store = args.reason.acting(store)?;
    let why = reason.or(found.paused_why.as_deref()).unwrap_or("paused by an operator");
    store.pause_subscription(&args.name, why).await?;
    if reason.is_none() && found.paused_why.is_some() {
        output::change(format_args!("subscription {} was paused already: {why}", args.name))?;
        return Ok(Outcome::Done);
    }
    output::change(format_args!(
        "subscription {} is paused; deliveries in progress are completed",
        args.name
    ))?;
    Ok(Outcome::Done)
}

pub(super) async fn resume(args: &SubscriptionArgs, store: &dyn Store) -> Result<Outcome> {
    known(&args.name, store).await?;
    let resumed = args.reason.acting(store)?.resume_subscription(&args.name).await?;
    let words = if resumed { "is resumed" } else { "was not paused" };
    output::change(format_args!("subscription {} {words}", args.name))?;
    Ok(Outcome::Done)
}

pub(super) async fn forget(args: &ForgetArgs, store: &dyn Store) -> Result<Outcome> {
    let subscription = known(&args.name, store).await?;
    let name = &args.name;
    if !subscription.publishers.is_empty() {
        bail!(
            "subscription {name} is published by {}: stop this publisher first",
            subscription.publishers[0].label
        );
    }
    let (parked, dead) = (subscription.parked_aggregates, subscription.dead);
    if parked + dead > 0 && !args.force {
        bail!(
            "subscription {name} has parked aggregates ({parked}) and dead letters ({dead}); give --force to delete them, too"
        );
    }
    args.reason.acting(store)?.remove_subscription(name).await?;
    output::change(format_args!(
        "subscription {name} is deleted; a relay that has it configured starts it again as a new one"
    ))?;
    Ok(Outcome::Done)
}

/// Returns the subscription with this name.
pub(super) async fn known(name: &str, store: &dyn Store) -> Result<SubscriptionView> {
    let all = store.subscriptions().await?;
    let names: Vec<&str> = all.iter().map(|subscription| subscription.name.as_str()).collect();
    match all.iter().find(|subscription| subscription.name == name) {
        Some(found) => Ok(found.clone()),
        None if names.is_empty() => {
            bail!("there is no subscription {name:?}: `milepost relay` creates those of its configuration")
        }
        None => bail!("there is no subscription {name:?}; there are {}", names.join(", ")),
    }
}
