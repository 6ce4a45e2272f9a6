//! `milepost schedules backfill`.

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::point_in_time;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::batch::listing::BatchFilter;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::schedule::{Made, Makes, Order, Schedule, Spec};
use milepost_core::search::JobFilter;
use serde::Serialize;

use super::operate::none;

/// The maximum number of ticks in one back-fill.
const TICKS_MAX: usize = 1000;
/// The number of ticks that a preview lists.
const PREVIEWED: usize = 20;

const EXAMPLES: &str = "\
Creates the missing jobs or batches of the ticks in the range, in the order of
the ticks. Ticks with a job or batch keep it, so it is safe to run the command
again. The schedule is not changed. Batches get the latest version of their
DAG.

A preview is shown first. On a terminal, the command asks for confirmation; in
scripts, give --yes.

Examples:
  milepost schedules backfill settlement --from 2026-10-01T00:00:00Z --to 2026-10-31T23:59:59Z --dry-run
  milepost schedules backfill settlement --from 2026-10-01T00:00:00Z --to 2026-10-31T23:59:59Z --yes";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackfillArgs {
    /// The schedule's name
    name: String,
    /// The start of the range, inclusive
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    from: Timestamp,
    /// The end of the range, inclusive; at most now
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    to: Timestamp,
    /// Only show the preview
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print one JSON array; needs --yes or --dry-run
    #[arg(long)]
    json: bool,
}

/// A tick and its job or batch, in the JSON output.
#[derive(Serialize)]
struct TickDocument {
    tick: Timestamp,
    key: String,
    /// The job or batch of the tick; `None` until it is created.
    id: Option<String>,
    /// Whether the job or batch existed before this command.
    before: bool,
}

pub(super) async fn run(args: BackfillArgs, store: &dyn Store) -> Result<Outcome> {
    if args.json && !(args.yes || args.dry_run) {
        bail!("--json needs --yes or --dry-run: it cannot ask for confirmation");
    }
    let view = store.schedule(&args.name).await?.ok_or_else(|| none(&args.name))?;
    let schedule = view.schedule;
    let ticks = ticks(&schedule.spec, args.from, args.to, store.clock().await?.now)?;
    let mut found = Vec::with_capacity(ticks.len());
    for tick in ticks {
        found.push(look(&schedule, tick, store).await?);
    }
    let missing = found.iter().filter(|tick| !tick.before).count();
    if args.dry_run && args.json {
        output::json(&found)?;
        return Ok(Outcome::Done);
    }
    if !args.json {
        preview(&schedule, &found, missing)?;
    }
    if args.dry_run || (missing == 0 && !args.json) {
        return Ok(Outcome::Done);
    }
    if !args.yes {
        match output::confirmed("Make them?")? {
            Some(true) => {}
            Some(false) => bail!("nothing was changed"),
            None => bail!("nothing was changed: confirmation needs a terminal; give --yes to skip it"),
        }
    }
    make_all(&schedule, &mut found, args.reason.acting(store)?.as_ref()).await?;
    tell(&schedule, &found, args.json)?;
    Ok(Outcome::Done)
}

/// Returns the ticks between two times, both inclusive.
fn ticks(spec: &Spec, from: Timestamp, to: Timestamp, now: Timestamp) -> Result<Vec<Timestamp>> {
    if from > to {
        bail!("--from {from} is after --to {to}");
    }
    if to > now {
        bail!("--to {to} is in the future, where the schedule creates ticks itself; give a time before now");
    }
    let before = from.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(from);
    let ticks = std::iter::successors(spec.next_after(before), |tick| spec.next_after(*tick));
    let ticks: Vec<Timestamp> = ticks.take_while(|tick| *tick <= to).take(TICKS_MAX + 1).collect();
    if let Some(over) = ticks.get(TICKS_MAX) {
        bail!(
            "there are more than {TICKS_MAX} ticks from {from} to {to}, the maximum of one backfill. The first \
             {TICKS_MAX} end before {over}: give a smaller range, and then the next one"
        );
    }
    Ok(ticks)
}

/// Finds the job or batch of a tick.
async fn look(schedule: &Schedule, tick: Timestamp, store: &dyn Store) -> Result<TickDocument> {
    let order = schedule.tick(tick).map_err(StoreError::from)?;
    let id = found(&order, store).await?.map(|(id, _)| id);
    Ok(TickDocument { tick, key: order.key().unwrap_or_default().to_owned(), before: id.is_some(), id })
}

/// Finds the job or batch with the key of an order; returns its id and state. Of any kind or DAG, because the schedule can have had another one.
pub(super) async fn found(order: &Order, store: &dyn Store) -> Result<Option<(String, String)>> {
    let key = order.key().map(str::to_owned);
    let filter = JobFilter { key: key.clone(), limit: 1, ..JobFilter::default() };
    if let Some(job) = store.jobs(&filter).await?.first() {
        return Ok(Some((job.id.to_string(), job.state.to_string())));
    }
    let filter = BatchFilter { key, limit: 1, ..BatchFilter::default() };
    Ok(store.batches(&filter).await?.first().map(|batch| (batch.id.to_string(), batch.state.to_string())))
}

/// Creates the missing jobs or batches, oldest tick first.
async fn make_all(schedule: &Schedule, found: &mut [TickDocument], store: &dyn Store) -> Result<()> {
    let mut made = 0;
    for tick in found.iter_mut().filter(|tick| !tick.before) {
        let order = schedule.tick(tick.tick).map_err(StoreError::from)?;
        let one = store.make(&schedule.name, &order).await.with_context(|| {
            format!(
                "the tick at {} failed; {made} before it were created, the later ones were not",
                tick.tick
            )
        })?;
        tick.before = one.is_duplicate();
        tick.id = Some(match one {
            Made::Job(job) => job.job.to_string(),
            Made::Batch(batch) => batch.batch.to_string(),
        });
        made += u32::from(!tick.before);
    }
    Ok(())
}

/// Prints the ticks for which a job or batch would be created.
fn preview(schedule: &Schedule, found: &[TickDocument], missing: usize) -> Result<()> {
    let one = noun(schedule);
    output::note(match (found.len(), missing) {
        (0, _) => format!("schedule {} has no tick in this time", schedule.name),
        (all, 0) => format!("all {} have their {one}: there is nothing to create", count(all)),
        (all, missing) => format!("{missing} of {} have no {one} yet and would get one", count(all)),
    });
    if missing == 0 {
        return Ok(());
    }
    for tick in found.iter().filter(|tick| !tick.before).take(PREVIEWED) {
        output::note(format_args!("  {}", tick.tick));
    }
    if missing > PREVIEWED {
        output::note(format_args!("  and {} more", missing - PREVIEWED));
    }
    Ok(())
}

/// Prints which jobs or batches were created and which existed before.
fn tell(schedule: &Schedule, found: &[TickDocument], json: bool) -> Result<()> {
    if json {
        return output::heard_or_not(output::json(&found));
    }
    let mut listing =
        Listing::new([Column::unbroken("TICK"), Column::unbroken("ID"), Column::unbroken("STATUS")]);
    for TickDocument { tick, id, before, .. } in found {
        listing.row([
            Field::text(tick.to_string()),
            Field::maybe(id.clone()),
            Field::text(if *before { "existed before" } else { "created" }),
        ]);
    }
    output::heard_or_not(listing.print().map_err(Into::into))?;
    let made = found.iter().filter(|tick| !tick.before).count();
    let before = found.len() - made;
    let one = noun(schedule);
    output::change(format_args!("schedule {}: {} got a {one}, {before} had one", schedule.name, count(made)))
}

/// Formats a number of ticks: `1 tick`, `12 ticks`.
fn count(ticks: usize) -> String {
    if ticks == 1 { "1 tick".to_owned() } else { format!("{ticks} ticks") }
}

/// Returns the noun for what a tick creates: `job` or `batch`.
const fn noun(schedule: &Schedule) -> &'static str {
    match schedule.makes {
        Makes::Job(_) => "job",
        Makes::Batch(_) => "batch",
    }
}
