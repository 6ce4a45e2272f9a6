//! `milepost bulk list`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::parsers;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::port::Store;
use milepost_core::state::JobState;

use super::words;
use crate::jobs::why;

const EXAMPLES: &str = "\
Active runs come first, then waiting runs in the order in which they start,
then ended runs, newest first.

STATE also shows the position in the group: running, holds it (and waits for a
window, or for a retry), next, 2nd, ..., or when the run may start.

Examples:
  milepost bulk list
  milepost bulk list --state running
  milepost bulk list --category 'popular content' --json | jq -r '.[].id'";

/// The maximum number of runs whose wait is explained, each with a query.
const EXPLAINED_MAX: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only runs of this bulk job
    #[arg(long)]
    name: Option<String>,
    /// Only runs in this state
    #[arg(long, value_parser = parsers::job_state())]
    state: Option<JobState>,
    /// Only runs of this group
    #[arg(long)]
    group: Option<String>,
    /// Only runs with this type label
    #[arg(long = "type", value_name = "LABEL")]
    r#type: Option<String>,
    /// Only runs with this category label
    #[arg(long, value_name = "LABEL")]
    category: Option<String>,
    /// The maximum number of listed runs
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: ListArgs, store: &dyn Store) -> Result<Outcome> {
    let limit = args.limit as usize;
    let filter = BulkFilter {
        job: None,
        name: args.name,
        state: args.state,
        group: args.group,
        r#type: args.r#type,
        category: args.category,
        before: None,
        limit: args.limit + 1,
    };
    let mut views = store.bulks(&filter).await?;
    let cut = views.len() > limit;
    views.truncate(limit);
    if args.json {
        output::json(&views)?;
    } else if !views.is_empty() {
        print(&views)?;
        print_reasons(&views, store).await?;
    }
    if cut {
        output::note(format_args!("only the first {limit} are listed; --limit lists more"));
    } else if views.is_empty() && !args.json {
        output::note("no bulk jobs");
    }
    Ok(Outcome::Done)
}

/// Prints the runs. Empty columns are omitted, so that a typical list fits in 80 characters.
fn print(views: &[BulkView]) -> Result<()> {
    let now = Timestamp::now();
    let groups = views.windows(2).any(|pair| pair[0].group != pair[1].group)
        && views.iter().any(|view| view.group.as_ref().is_some_and(|group| *group != view.name));
    let failed = views.iter().any(|view| view.counts.failed > 0);
    let columns = [
        Some(Column::unbroken("ID")),
        Some(Column::new("NAME")),
        groups.then_some(Column::new("GROUP")),
        Some(Column::unbroken("STATE")),
        Some(Column::unbroken("DONE")),
        failed.then_some(Column::unbroken("FAILED")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for view in views {
        let fields = [
            Some(Field::text(view.id.to_string())),
            Some(Field::text(&view.name)),
            groups.then(|| Field::maybe(view.group.as_deref())),
            Some(Field::state_as(view.state, standing(view, now))),
            Some(Field::text(done(view))),
            failed.then(|| failures(view)),
        ];
        listing.line(fields.into_iter().flatten());
    }
    Ok(listing.print()?)
}

/// Prints why runs wait that have the slot of their group.
async fn print_reasons(views: &[BulkView], store: &dyn Store) -> Result<()> {
    let now = Timestamp::now();
    for view in views {
        if let Some(throttle) = &view.throttle {
            output::line(format_args!("{}  held by {}", view.id, printable(throttle)))?;
        }
    }
    let ready = views.iter().filter(|view| view.state == JobState::Pending && view.throttle.is_none());
    for view in ready.take(EXPLAINED_MAX) {
        if let Some(waiting) = store.job(view.id).await?.and_then(|job| job.waiting_for) {
            output::line(format_args!("{}  waits: {}", view.id, why(&waiting, now)))?;
        }
    }
    Ok(())
}

/// Returns the state of a run, or its position in the group's queue.
fn standing(view: &BulkView, now: Timestamp) -> String {
    match (view.stopping, words::turn(view, now)) {
        (Some(_), _) => "stopping".to_owned(),
        (None, turn) if turn.is_empty() => view.state.to_string(),
        (None, turn) => turn,
    }
}

/// Returns the completed share, or the number of processed targets if the total is unknown.
fn done(view: &BulkView) -> String {
    match words::percent(view) {
        Some(percent) => percent,
        None if view.started_at.is_none() => String::new(),
        None => words::count(view.passed()),
    }
}

fn failures(view: &BulkView) -> Field {
    match view.counts.failed {
        0 => Field::text(""),
        failed => Field::warning(words::count(failed)),
    }
}
