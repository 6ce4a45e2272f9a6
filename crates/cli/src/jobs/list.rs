//! `milepost jobs list`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::ident::JobId;
use milepost_core::job::QUEUE_DEFAULT;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;

use super::filter::FilterArgs;
use crate::time::{length, relative};
use crate::watch::{self, Watched};

const EXAMPLES: &str = "\
Examples:
  milepost jobs list
  milepost jobs list --state failed --kind mail
  milepost jobs list --state running --watch
  milepost jobs list --key order-4711
  milepost jobs list --payload customer.id=42 --created-from 2026-05-01T00:00:00Z
  milepost jobs list --limit 10000 --json | jq -r '.[].id'

At most --limit jobs are listed; a note on stderr reports if there are more.

WHEN is the time when a waiting job is due, when a running job started, or when
a job ended; otherwise the age of the job.

States: blocked (waits for its group or for other jobs), pending (waits for
its time or a worker), running, retry_wait (failed, will be retried), failed
(dead letter), aborted (stopped, can be resumed), succeeded, canceled, skipped.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// The maximum number of listed jobs
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Only jobs older than this one, the last id of the previous page
    #[arg(long, value_name = "ID", value_parser = parsers::job_id)]
    before: Option<JobId>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// List them again every second, until interrupted
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

pub(crate) async fn run(args: ListArgs, store: &dyn Store) -> Result<Outcome> {
    if args.watch {
        watch::repeat(async || list(&args, store).await.map(|()| Watched::GoesOn)).await?;
    } else {
        list(&args, store).await?;
    }
    Ok(Outcome::Done)
}

async fn list(args: &ListArgs, store: &dyn Store) -> Result<()> {
    let limit = args.limit as usize;
    let filter = JobFilter { before: args.before, ..args.filter.filter() };
    let mut rows = find(store, filter, limit + 1).await?;
    let cut = rows.len() > limit;
    rows.truncate(limit);
    if args.json {
        output::json(&rows)?;
    } else {
        print(&rows)?;
    }
    match rows.last() {
        Some(last) if cut => {
            let id = last.id;
            output::note(format_args!(
                "only the newest {limit} are listed; to list older ones, add --before {id}"
            ));
        }
        None if !args.json => output::note("no jobs"),
        _ => {}
    }
    Ok(())
}

/// Returns up to `limit` jobs, newest first. The store is searched in several steps, so that no statement runs long when only few of ten
/// million jobs match.
async fn find(store: &dyn Store, mut filter: JobFilter, limit: usize) -> Result<Vec<JobRow>> {
    let mut rows = Vec::new();
    while rows.len() < limit {
        filter.limit = (limit - rows.len()) as u32;
        let found = store.search_jobs(&filter).await?;
        rows.extend(found.rows);
        filter.before = found.next;
        if filter.before.is_none() {
            break;
        }
    }
    Ok(rows)
}

/// Prints the jobs. Empty columns are omitted, so that a typical list fits in 80 characters.
fn print(rows: &[JobRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let now = Timestamp::now();
    let queues = rows.iter().any(|row| row.queue != QUEUE_DEFAULT);
    let keys = rows.iter().any(|row| row.chosen_key().is_some());
    let columns = [
        Some(Column::unbroken("ID")),
        Some(Column::new("KIND")),
        queues.then_some(Column::new("QUEUE")),
        Some(Column::unbroken("STATE")),
        Some(Column::unbroken("ATTEMPT")),
        keys.then_some(Column::new("KEY")),
        Some(Column::unbroken("WHEN")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for row in rows {
        let fields = [
            Some(Field::text(row.id.to_string())),
            Some(Field::text(&row.kind)),
            queues.then(|| Field::text(&row.queue)),
            Some(Field::state(row.state)),
            Some(Field::text(format!("{}/{}", row.attempt, row.max_attempts))),
            keys.then(|| Field::maybe(row.chosen_key())),
            Some(Field::text(when(row, now))),
        ];
        listing.line(fields.into_iter().flatten());
    }
    Ok(listing.print()?)
}

/// Returns the most relevant time for the job's state: when it is due, when it started to run, or when it ended; otherwise its age.
fn when(row: &JobRow, now: Timestamp) -> String {
    let since = |time: Timestamp| length(now.duration_since(time).unsigned_abs());
    match (row.state, row.ready_at, row.started_at, row.ended_at) {
        (JobState::Pending | JobState::RetryWait, Some(at), _, _) if at > now => relative(at, now),
        (JobState::Running, _, Some(at), _) => format!("for {}", since(at)),
        (state, _, _, Some(at)) if state.is_ended() => relative(at, now),
        _ => format!("{} old", since(row.created_at)),
    }
}
