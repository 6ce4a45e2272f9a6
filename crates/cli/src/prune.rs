//! `milepost prune`: applies the retention policy once, on demand.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::store::{self, Schema};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::duration::exact;
use milepost_core::port::Store;
use milepost_core::retention::{Keep, Pace, Prunable, Pruned, Retained, RetentionPeriod, RetentionPolicy};
use serde::Serialize;

use crate::selection::Selection;

const EXAMPLES: &str = "\
Workers do this continuously, in small batches. Use this command for a backlog,
or for periods that apply once. The default of a period is the one that an
operator set (milepost retention), else that of the configuration ([retention]),
else the one shown for its option. Jobs that wait, run or were aborted are never
deleted. The command can be stopped and started again at any time.

A period is a duration such as 7d, 12h or 90s since the job ended, or forever.
If the history is deleted before its job, its last entry is kept. A key is kept
at least as long as its job; 0s means exactly as long.

Examples:
  milepost prune --dry-run
  milepost prune --succeeded 1d --failed forever
  milepost prune --succeeded forever --canceled forever --history 30d --json";

const DAY_S: u64 = 24 * 3600;
/// The maximum number of jobs in one transaction.
const LIMIT: u32 = 500;
/// The pause after each transaction, which lets other writers proceed.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PruneArgs {
    /// How long succeeded jobs are kept [default: as set, else 7d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    succeeded: Option<Keep>,
    /// How long canceled and skipped jobs are kept [default: as set, else 7d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    canceled: Option<Keep>,
    /// How long dead letters are kept [default: as set, else 90d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    failed: Option<Keep>,
    /// How long the history of ended jobs is kept, at most as long as the job [default: as set, else forever]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    history: Option<Keep>,
    /// How long keys are kept, at least as long as the job [default: as set, else 0s]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    keys: Option<Keep>,
    /// How long stopped workers are kept [default: as set, else 7d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    workers: Option<Keep>,
    /// How long ended batches are kept; their jobs stay at least as long [default: as set, else 7d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    batches: Option<Keep>,
    /// How long ids of events that consumers have processed are kept [default: as set, else 14d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    inbox: Option<Keep>,
    /// How long events that all subscriptions have processed are kept [default: as set, else 7d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    events: Option<Keep>,
    /// How long entries of the audit are kept [default: as set, else 400d]
    #[arg(long, value_name = "PERIOD", value_parser = parsers::keep)]
    audit: Option<Keep>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Only count the rows that would be deleted; events are not counted
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    /// Returns the policy of the workers, with the periods given on the command line replaced.
    fn policy(&self, of_workers: RetentionPolicy) -> RetentionPolicy {
        let given = |of: &Retained| Some(RetentionPeriod { of: *of, keep: self.given(*of)? });
        of_workers.with(Retained::ALL.iter().filter_map(given))
    }

    const fn given(&self, what: Retained) -> Option<Keep> {
        match what {
            Retained::Succeeded => self.succeeded,
            Retained::Canceled => self.canceled,
            Retained::Failed => self.failed,
            Retained::History => self.history,
            Retained::Keys => self.keys,
            Retained::Workers => self.workers,
            Retained::Batches => self.batches,
            Retained::Inbox => self.inbox,
            Retained::Events => self.events,
            Retained::Audit => self.audit,
        }
    }
}

pub(crate) async fn run(args: &PruneArgs, selection: &Selection) -> Result<Outcome> {
    args.policy(selection.configured_retention()?).check()?;
    let store = store::open(&selection.store()?, Schema::MustFit).await?;
    let policy = args.policy(selection.retention(store.as_ref()).await?);
    let due = store.prunable(&policy).await.context("cannot count the rows to delete")?;
    if args.dry_run {
        report(args, &policy, &Report { dry_run: true, counts: &due, rows: None, seconds: None })?;
        return Ok(Outcome::Done);
    }
    let (store, began) = (args.reason.acting(store.as_ref())?, Instant::now());
    // Batches are deleted first, so that their jobs can be deleted with the other jobs.
    let rows = prune_batches(store.as_ref(), &policy).await?;
    let mut pruned = prune(store.as_ref(), &policy, due.total()).await?;
    pruned.rows += rows;
    pruned.what.batches = due.batches;
    pruned.what.events = prune_log(store.as_ref(), &policy).await?;
    pruned.rows += pruned.what.events;
    let seconds = (began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    report(
        args,
        &policy,
        &Report { dry_run: false, counts: &pruned.what, rows: Some(pruned.rows), seconds: Some(seconds) },
    )?;
    Ok(Outcome::Done)
}

/// Deletes batches page by page; returns the number of deleted rows.
async fn prune_batches(store: &dyn Store, policy: &RetentionPolicy) -> Result<u64> {
    let Some(period) = policy.batches.period() else { return Ok(0) };
    let mut sum = 0;
    loop {
        match store
            .prune_batches(period)
            .await
            .context("stopped at batches; run the command again to continue")?
        {
            0 => return Ok(sum),
            rows => sum += rows,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Deletes events in portions; returns the number of deleted events.
async fn prune_log(store: &dyn Store, policy: &RetentionPolicy) -> Result<u64> {
    let Some(period) = policy.events.period() else { return Ok(0) };
    let mut sum = 0;
    while let Some(events) =
        store.prune_log(period).await.context("stopped at events; run the command again to continue")?
    {
        sum += events;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(sum)
}

/// Deletes jobs and their data in portions until nothing more is due.
async fn prune(store: &dyn Store, policy: &RetentionPolicy, due: u64) -> Result<Pruned> {
    let bar = bar(due);
    let mut sum = Pruned::default();
    loop {
        let batch = store.prune(policy, Pace { limit: LIMIT, rest: 0 }).await.with_context(|| {
            format!("stopped after {} jobs; run the command again to continue", sum.what.jobs())
        })?;
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

/// Returns a progress bar, which is shown only on a terminal.
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

fn report(args: &PruneArgs, policy: &RetentionPolicy, report: &Report<'_>) -> Result<()> {
    if args.json {
        return output::json(report);
    }
    let counts = report.counts;
    let mut listing = Listing::new([
        Column::new("WHAT"),
        Column::unbroken("KEPT"),
        Column::unbroken(if report.dry_run { "TO DELETE" } else { "DELETED" }),
    ]);
    for (what, keep, count) in [
        ("succeeded jobs", policy.succeeded, counts.succeeded),
        ("canceled and skipped jobs", policy.canceled, counts.canceled),
        ("dead letters", policy.failed, counts.failed),
        ("histories before their jobs", policy.history, counts.histories),
        ("keys after their jobs", policy.keys, counts.keys),
        ("ended workers", policy.workers, counts.workers),
        ("batches", policy.batches, counts.batches),
        ("ids of processed events", policy.inbox, counts.inbox),
        ("dead letters of inboxes", policy.failed, counts.inbox_dead),
        ("events", policy.events, counts.events),
        ("entries of the audit", policy.audit, counts.audit),
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

/// Describes a retention period; rows that are deleted together with their job have `with the job`.
fn kept(what: &str, keep: Keep) -> String {
    match keep {
        Keep::Forever if what.starts_with("histories") => "with the job".to_owned(),
        Keep::For(Duration::ZERO) if what.starts_with("keys") => "with the job".to_owned(),
        Keep::Forever => "forever".to_owned(),
        Keep::For(Duration::ZERO) => "not at all".to_owned(),
        Keep::For(period) if period.as_secs().is_multiple_of(DAY_S) && period.subsec_nanos() == 0 => {
            format!("{}d", period.as_secs() / DAY_S)
        }
        Keep::For(period) => exact(period),
    }
}
