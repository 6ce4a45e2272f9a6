//! `milepost prune`: retention, now and by hand.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_core::port::Store;
use milepost_core::retention::{Keep, Pace, Prunable, Pruned, RetentionPolicy};
use serde::Serialize;

use crate::args;
use crate::output::{self, Outcome};
use crate::store::{self, Schema, StoreAddress};
use crate::table::{Column, Field, Listing};

const EXAMPLES: &str = "\
Workers do this all the time, a little at a time. By hand it is for a backlog,
or for periods that are to count once. Jobs that wait, run or were aborted are
never forgotten. It may be stopped and started again at any time.

A period is a length of time such as 7d, 12h or 90s since the job ended, or
forever. History cut before its job keeps its last entry. A key lives at least
as long as its job; 0s means exactly as long.

Examples:
  milepost prune --dry-run
  milepost prune --succeeded 1d --failed forever
  milepost prune --succeeded forever --canceled forever --history 30d --json";

const DAY_S: u64 = 24 * 3600;
/// Jobs of one transaction.
const LIMIT: u32 = 500;
/// The pause after each, so that others get in.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PruneArgs {
    /// How long jobs are kept that succeeded
    #[arg(long, value_name = "PERIOD", default_value = "7d", value_parser = args::keep)]
    succeeded: Keep,
    /// How long jobs are kept that were canceled or skipped
    #[arg(long, value_name = "PERIOD", default_value = "7d", value_parser = args::keep)]
    canceled: Keep,
    /// How long dead letters are kept
    #[arg(long, value_name = "PERIOD", default_value = "90d", value_parser = args::keep)]
    failed: Keep,
    /// How long the history of ended jobs is kept; with the job at the latest
    #[arg(long, value_name = "PERIOD", default_value = "forever", value_parser = args::keep)]
    history: Keep,
    /// How long keys are kept; with the job at the earliest
    #[arg(long, value_name = "PERIOD", default_value = "0s", value_parser = args::keep)]
    keys: Keep,
    /// How long workers are kept that ended
    #[arg(long, value_name = "PERIOD", default_value = "7d", value_parser = args::keep)]
    workers: Keep,
    /// How long batches are kept that ended; their jobs stay at least as long
    #[arg(long, value_name = "PERIOD", default_value = "7d", value_parser = args::keep)]
    batches: Keep,
    /// How long ids of events are kept that consumers took in
    #[arg(long, value_name = "PERIOD", default_value = "14d", value_parser = args::keep)]
    inbox: Keep,
    /// How long events are kept that every subscription has gone past
    #[arg(long, value_name = "PERIOD", default_value = "7d", value_parser = args::keep)]
    events: Keep,
    /// How long entries of the audit are kept
    #[arg(long, value_name = "PERIOD", default_value = "400d", value_parser = args::keep)]
    audit: Keep,
    /// Only count what would be forgotten; events are not counted
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    const fn policy(&self) -> RetentionPolicy {
        RetentionPolicy {
            succeeded: self.succeeded,
            canceled: self.canceled,
            failed: self.failed,
            history: self.history,
            keys: self.keys,
            workers: self.workers,
            batches: self.batches,
            inbox: self.inbox,
            events: self.events,
            audit: self.audit,
        }
    }
}

pub(crate) async fn run(args: &PruneArgs, address: &StoreAddress) -> Result<Outcome> {
    let policy = args.policy();
    policy.check()?;
    let store = store::open(address, Schema::MustFit).await?;
    let due = store.prunable(&policy).await.context("cannot count what is over")?;
    if args.dry_run {
        report(args, &Report { dry_run: true, counts: &due, rows: None, seconds: None })?;
        return Ok(Outcome::Done);
    }
    let began = Instant::now();
    // First, so that their jobs can go with the others.
    let rows = prune_batches(store.as_ref(), &policy).await?;
    let mut pruned = prune(store.as_ref(), &policy, due.total()).await?;
    pruned.rows += rows;
    pruned.what.batches = due.batches;
    pruned.what.events = prune_log(store.as_ref(), &policy).await?;
    pruned.rows += pruned.what.events;
    let seconds = (began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    report(
        args,
        &Report { dry_run: false, counts: &pruned.what, rows: Some(pruned.rows), seconds: Some(seconds) },
    )?;
    Ok(Outcome::Done)
}

/// Forgets batches page by page; answers how many rows.
async fn prune_batches(store: &dyn Store, policy: &RetentionPolicy) -> Result<u64> {
    let Some(period) = policy.batches.period() else { return Ok(0) };
    let mut sum = 0;
    loop {
        match store.prune_batches(period).await.context("stopped at batches; start it again to go on")? {
            0 => return Ok(sum),
            rows => sum += rows,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Forgets events portion by portion; answers how many.
async fn prune_log(store: &dyn Store, policy: &RetentionPolicy) -> Result<u64> {
    let Some(period) = policy.events.period() else { return Ok(0) };
    let mut sum = 0;
    while let Some(events) =
        store.prune_log(period).await.context("stopped at events; start it again to go on")?
    {
        sum += events;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(sum)
}

/// Portion after portion, until one is not full.
async fn prune(store: &dyn Store, policy: &RetentionPolicy, due: u64) -> Result<Pruned> {
    let bar = bar(due);
    let mut sum = Pruned::default();
    loop {
        let batch = store
            .prune(policy, Pace { limit: LIMIT, rest: 0 })
            .await
            .with_context(|| format!("stopped after {} jobs; start it again to go on", sum.what.jobs()))?;
        sum += batch;
        bar.set_position(sum.what.total());
        bar.set_message(format!("{} rows", HumanCount(sum.rows)));
        if !batch.more {
            bar.finish_and_clear();
            return Ok(sum);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// It shows only on a terminal.
fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{prefix:>8} [{bar:30}] {human_pos}/{human_len}, {msg}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix("prune");
    bar
}

#[derive(Serialize)]
struct Report<'a> {
    dry_run: bool,
    #[serde(flatten)]
    counts: &'a Prunable,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

fn report(args: &PruneArgs, report: &Report<'_>) -> Result<()> {
    if args.json {
        return output::json(report);
    }
    let counts = report.counts;
    let mut listing = Listing::new([
        Column::new("WHAT"),
        Column::unbroken("KEPT"),
        Column::unbroken(if report.dry_run { "TO FORGET" } else { "FORGOTTEN" }),
    ]);
    for (what, keep, count) in [
        ("succeeded jobs", args.succeeded, counts.succeeded),
        ("canceled and skipped jobs", args.canceled, counts.canceled),
        ("dead letters", args.failed, counts.failed),
        ("histories before their jobs", args.history, counts.histories),
        ("keys after their jobs", args.keys, counts.keys),
        ("ended workers", args.workers, counts.workers),
        ("batches", args.batches, counts.batches),
        ("ids of events taken in", args.inbox, counts.inbox),
        ("dead letters of inboxes", args.failed, counts.inbox_dead),
        ("events", args.events, counts.events),
        ("entries of the audit", args.audit, counts.audit),
    ] {
        let uncounted = report.dry_run && what == "events";
        let count = if uncounted { "?".to_owned() } else { count.to_string() };
        listing.row([Field::text(what), Field::text(kept(what, keep)), Field::text(count)]);
    }
    listing.print()?;
    if let (Some(rows), Some(seconds)) = (report.rows, report.seconds) {
        output::note(format_args!("{} rows in {seconds:.1} s", HumanCount(rows)));
    }
    Ok(())
}

/// A period in words; what is kept with its job says so.
fn kept(what: &str, keep: Keep) -> String {
    match keep {
        Keep::Forever if what.starts_with("histories") => "with the job".to_owned(),
        Keep::For(Duration::ZERO) if what.starts_with("keys") => "with the job".to_owned(),
        Keep::Forever => "forever".to_owned(),
        Keep::For(Duration::ZERO) => "not at all".to_owned(),
        Keep::For(period) if period.as_secs().is_multiple_of(DAY_S) && period.subsec_nanos() == 0 => {
            format!("{}d", period.as_secs() / DAY_S)
        }
        Keep::For(period) => humantime::format_duration(period).to_string(),
    }
}
