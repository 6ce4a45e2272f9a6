//! `milepost queues`: lists, pauses and resumes queues.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use milepost_cli_support::operator::{ReasonArgs, help};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::Action as _;
use milepost_core::actions::queue::QueueAction;
use milepost_core::job::check_queue;
use milepost_core::listing::QueueView;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use serde::Serialize;

use crate::time::relative;

#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// List queues with the number of jobs in each state
    #[command(after_help = "Lists queues that have open jobs, are served by a worker or are paused.\n\n\
        Examples:\n  milepost queues list\n  milepost queues list --json")]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    #[command(about = QueueAction::Pause.description().summary, after_help = help(QueueAction::Pause, PAUSE_EXAMPLES))]
    Pause(QueueArgs),
    #[command(about = QueueAction::Resume.description().summary, after_help = help(QueueAction::Resume, RESUME_EXAMPLES))]
    Resume(QueueArgs),
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  milepost queues pause mail --reason 'the provider is down'
  milepost queues resume mail";

const RESUME_EXAMPLES: &str = "\
Examples:
  milepost queues resume mail";

impl QueuesCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// The queue's name
    name: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

pub(crate) async fn run(command: QueuesCommand, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    match command {
        QueuesCommand::List { json } => list(&store.queues().await?, json)?,
        QueuesCommand::Pause(args) => set(args, QueueAction::Pause, store.as_ref()).await?,
        QueuesCommand::Resume(args) => set(args, QueueAction::Resume, store.as_ref()).await?,
    }
    Ok(Outcome::Done)
}

async fn set(args: QueueArgs, action: QueueAction, store: &dyn Store) -> Result<()> {
    let (name, paused) = (&args.name, action == QueueAction::Pause);
    check_queue(name)?;
    let changed = args.reason.acting(store)?.pause_queue(name, paused).await?;
    output::change(format_args!("queue {name} {}", action.result(changed)))?;
    if paused || !changed {
        doubt(name, store).await?;
    }
    Ok(())
}

/// Prints a note if the queue has no jobs and no running worker serves it: its name may be mistyped.
async fn doubt(name: &str, store: &dyn Store) -> Result<()> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    known.extend(
        store.queues().await?.into_iter().filter(|queue| !queue.counts.is_empty()).map(|queue| queue.name),
    );
    known.extend(
        store.workers().await?.into_iter().filter(|it| it.ended_at.is_none()).flat_map(|it| it.queues),
    );
    if !known.contains(name) {
        let known: Vec<String> = known.into_iter().collect();
        let others = if known.is_empty() {
            "none is known".to_owned()
        } else {
            format!("known are {}", known.join(", "))
        };
        output::note(format_args!("no job waits in queue {name} and no worker serves it; {others}"));
    }
    Ok(())
}

/// The counted states, in the order of the table's columns.
const COUNTED: [JobState; 6] = [
    JobState::Pending,
    JobState::Running,
    JobState::RetryWait,
    JobState::Failed,
    JobState::Blocked,
    JobState::Aborted,
];

/// A queue in the JSON output: counts by state name.
#[derive(Serialize)]
struct QueueDocument<'a> {
    name: &'a str,
    paused_at: Option<Timestamp>,
    workers: i64,
    oldest_due_at: Option<Timestamp>,
    counts: BTreeMap<JobState, i64>,
}

fn list(queues: &[QueueView], json: bool) -> Result<()> {
    if json {
        let documents: Vec<_> = queues.iter().map(document).collect();
        return output::json(&documents);
    }
    if queues.is_empty() {
        output::note("no queue has open jobs, is served or is paused");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::new("QUEUE"),
        Column::unbroken("TAKES JOBS"),
        Column::unbroken("OLDEST DUE"),
        Column::unbroken("PENDING"),
        Column::unbroken("RUNNING"),
        Column::unbroken("RETRY"),
        Column::unbroken("FAILED"),
        Column::unbroken("BLOCKED"),
        Column::unbroken("ABORTED"),
    ]);
    for queue in queues {
        let takes = match (queue.paused_at, queue.workers) {
            (Some(since), _) => Field::warning(format!("no, paused {}", relative(since, now))),
            (None, 0) => Field::warning("no, no worker serves it"),
            (None, 1) => Field::text("yes, 1 worker"),
            (None, workers) => Field::text(format!("yes, {workers} workers")),
        };
        let counts = document(queue).counts;
        let count = |state| Field::text(counts.get(&state).unwrap_or(&0).to_string());
        let [pending, running, retry_wait, failed, blocked, aborted] = COUNTED.map(count);
        let name = Field::text(&queue.name);
        let oldest =
            queue.oldest_due_at.map_or_else(|| Field::text(""), |since| Field::text(relative(since, now)));
        listing.row([name, takes, oldest, pending, running, retry_wait, failed, blocked, aborted]);
    }
    Ok(listing.print()?)
}

fn document(queue: &QueueView) -> QueueDocument<'_> {
    QueueDocument {
        name: &queue.name,
        paused_at: queue.paused_at,
        workers: queue.workers,
        oldest_due_at: queue.oldest_due_at,
        counts: queue.counts.iter().copied().collect(),
    }
}
