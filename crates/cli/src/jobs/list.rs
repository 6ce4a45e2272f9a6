//! `milepost jobs list`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobFilter, JobRow};
use milepost_core::port::Store;
use milepost_core::state::JobState;

use crate::args;
use crate::output::{self, Outcome};
use crate::table::{Field, Listing};
use crate::time::relative;

const EXAMPLES: &str = "\
Examples:
  milepost jobs list
  milepost jobs list --state failed --kind mail
  milepost jobs list --key order-4711
  milepost jobs list --limit 500 --json | jq -r '.[].id'

States: blocked (waits for its group or for other jobs), pending (waits for its time or a worker),
running, retry_wait (failed, will be tried again), failed (given up on), aborted (stopped, can be
resumed), succeeded, canceled, skipped.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Only jobs in this state
    #[arg(long, value_parser = args::job_state())]
    state: Option<JobState>,
    /// Only jobs of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs in this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs with this key
    #[arg(long)]
    key: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Only jobs older than this one: the last id of the page before
    #[arg(long, value_name = "ID", value_parser = args::job_id)]
    before: Option<JobId>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ListArgs, store: &dyn Store) -> Result<Outcome> {
    let filter = JobFilter {
        state: args.state,
        kind: args.kind,
        queue: args.queue,
        key: args.key,
        before: args.before,
        limit: args.limit,
    };
    let rows = store.jobs(&filter).await?;
    if args.json {
        output::json(&rows)?;
        return Ok(Outcome::Done);
    }
    print(&rows)?;
    match rows.last() {
        None => output::note("no jobs"),
        Some(last) if rows.len() >= args.limit as usize => {
            output::note(format_args!("for older ones add: --before {}", last.id));
        }
        Some(_) => {}
    }
    Ok(Outcome::Done)
}

fn print(rows: &[JobRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let now = Timestamp::now();
    let mut listing =
        Listing::new(&["ID", "KIND", "QUEUE", "STATE", "TRY", "KEY", "CREATED", "NOW"]).unbroken(0);
    for row in rows {
        listing.row([
            Field::text(row.id.to_string()),
            Field::text(&row.kind),
            Field::text(&row.queue),
            Field::state(row.state),
            Field::text(format!("{}/{}", row.attempt, row.max_attempts)),
            Field::maybe(row.key.as_deref()),
            Field::text(relative(row.created_at, now)),
            Field::text(standing(row, now)),
        ]);
    }
    Ok(listing.print()?)
}

/// The time that matters most in the job's state.
fn standing(row: &JobRow, now: Timestamp) -> String {
    match (row.state, row.ready_at, row.started_at, row.ended_at) {
        (JobState::Pending | JobState::RetryWait, Some(at), _, _) if at > now => {
            format!("due {}", relative(at, now))
        }
        (JobState::Pending | JobState::RetryWait, Some(_), _, _) => "ready".to_owned(),
        (JobState::Running, _, Some(at), _) => format!("since {}", relative(at, now)),
        (state, _, _, Some(at)) if state.is_ended() => relative(at, now),
        _ => String::new(),
    }
}
