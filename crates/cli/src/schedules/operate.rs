//! `milepost schedules remove`, `pause`, `resume` and `run-now`.

use anyhow::{Result, bail};
use clap::Args;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::schedule::{Made, Source};

#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    /// The schedule's name
    name: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunNowArgs {
    /// The schedule's name
    name: String,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn remove(args: &ScheduleArgs, store: &dyn Store) -> Result<Outcome> {
    let name = &args.name;
    match store.schedule(name).await? {
        Some(view) if view.source == Source::Config => bail!(
            "schedule {name} comes from a configuration, which would create it again; remove it there, pause it \
             (`milepost schedules pause {name}`), or replace it (`milepost schedules add {name} … --replace`)"
        ),
        _ if !args.reason.acting(store)?.remove_schedule(name, Source::Operator).await? => Err(none(name)),
        _ => {
            output::change(format_args!("schedule {name} is removed; its jobs and batches stay"))?;
            Ok(Outcome::Done)
        }
    }
}

pub(super) async fn pause(args: &ScheduleArgs, store: &dyn Store) -> Result<Outcome> {
    let name = &args.name;
    let changed = args.reason.acting(store)?.pause_schedule(name).await?;
    if !changed && store.schedule(name).await?.is_none() {
        return Err(none(name));
    }
    let words = if changed { "is paused" } else { "was paused already" };
    output::change(format_args!("schedule {name} {words}"))?;
    Ok(Outcome::Done)
}

pub(super) async fn resume(args: &ScheduleArgs, store: &dyn Store) -> Result<Outcome> {
    let name = &args.name;
    let changed =
        args.reason.acting(store)?.resume_schedule(name).await.map_err(|error| known(error, name))?;
    let words = if changed { "is resumed" } else { "was not paused" };
    output::change(format_args!("schedule {name} {words}"))?;
    Ok(Outcome::Done)
}

pub(super) async fn run_now(args: &RunNowArgs, store: &dyn Store) -> Result<Outcome> {
    let made = args
        .reason
        .acting(store)?
        .run_schedule_now(&args.name, None)
        .await
        .map_err(|error| known(error, &args.name))?;
    if args.json {
        output::heard_or_not(output::json(&made))?;
    } else {
        match made {
            Made::Job(made) => output::change(format_args!("{}  enqueued", made.job))?,
            Made::Batch(made) => output::change(format_args!("{}  started", made.batch))?,
        }
    }
    Ok(Outcome::Done)
}

/// The error for an unknown schedule; it explains how to list the known ones.
pub(super) fn none(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no schedule {name:?}; `milepost schedules list` lists all")
}

fn known(error: StoreError, name: &str) -> anyhow::Error {
    match error {
        StoreError::NoSuchSchedule(_) => none(name),
        other => other.into(),
    }
}
