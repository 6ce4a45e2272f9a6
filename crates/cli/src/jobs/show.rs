//! `milepost jobs show`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::parsers;
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::error::StoreError;
use milepost_core::format::pretty;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::listing::{JobRow, JobView, Waiting};
use milepost_core::port::Store;
use milepost_core::schedule::schedule_of_key;
use milepost_core::worker::Progress;
use serde::Serialize;

use crate::time::{exact, length, relative};
use crate::watch::{self, Watched};

const EXAMPLES: &str = "\
Examples:
  milepost jobs show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost jobs show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --watch
  milepost jobs show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --json | jq .result";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The job's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show it again every second, until it has ended or failed
    #[arg(long, conflicts_with = "json")]
    watch: bool,
}

/// A job in the JSON output.
#[derive(Serialize)]
struct JobDocument<'a> {
    #[serde(flatten)]
    view: &'a JobView,
    history: &'a [HistoryEntry],
}

pub(crate) async fn run(args: ShowArgs, store: &dyn Store) -> Result<Outcome> {
    if args.watch {
        watch::repeat(async || show(&args, store).await).await?;
    } else {
        show(&args, store).await?;
    }
    Ok(Outcome::Done)
}

/// Prints the job once.
async fn show(args: &ShowArgs, store: &dyn Store) -> Result<Watched> {
    let Some(view) = store.job(args.id).await? else {
        return Err(StoreError::NoSuchJob(args.id).into());
    };
    if args.json {
        let history = store.complete_history(args.id).await?;
        output::json(&JobDocument { view: &view, history: &history })?;
    } else {
        let history = newest_changes(args.id, store).await?;
        let now = Timestamp::now();
        print_facts(&view, now)?;
        print_json("payload", Some(view.payload.get()))?;
        print_json("result", view.result.as_ref().map(|json| json.get()))?;
        print_json("checkpoint", view.checkpoint.as_ref().map(|json| json.get()))?;
        print_timeline(&history, now)?;
    }
    Ok(if view.row.state.is_over() { Watched::Ended } else { Watched::GoesOn })
}

/// Maximum number of state changes in the text output.
const CHANGES_MAX: u32 = 1_000;

/// Returns the newest state changes; tells where the earlier ones are.
async fn newest_changes(id: JobId, store: &dyn Store) -> Result<Vec<HistoryEntry>> {
    let mut history = store.history(id, HistoryPart::Newest { limit: CHANGES_MAX + 1 }).await?;
    if history.len() > CHANGES_MAX as usize {
        history.remove(0);
        output::note(format_args!(
            "only the newest {CHANGES_MAX} state changes are shown; --json prints all"
        ));
    }
    Ok(history)
}

fn print_facts(view: &JobView, now: Timestamp) -> Result<()> {
    let row = &view.row;
    let stopping = if view.stop_requested { ", asked to stop" } else { "" };
    let since = |time: Option<Timestamp>| time.map(|time| exact(time, now));
    let facts = [
        ("job", Some(row.id.to_string())),
        ("kind", Some(row.kind.clone())),
        ("queue", Some(format!("{}, priority {}", row.queue, row.priority))),
        ("key", row.key.clone()),
        ("group", row.group.clone()),
        ("schedule", tick(row, now)),
        (
            "event",
            view.started_by
                .as_ref()
                .map(|by| format!("{} of the subscription {}", by.event, by.subscription)),
        ),
        ("state", Some(format!("{}{stopping}", row.state))),
        ("waits", view.waiting_for.as_ref().map(|waiting| why(waiting, now))),
        ("attempt", Some(format!("{} of {}", row.attempt, row.max_attempts))),
        ("worker", row.worker.map(|worker| worker.to_string())),
        (
            if row.state.is_ended() { "last reported progress" } else { "progress" },
            view.progress.as_ref().map(share),
        ),
        (
            "failure",
            view.last_failure.as_ref().map(|last| failure(last.code.as_deref(), last.message.as_deref())),
        ),
        ("created", Some(exact(row.created_at, now))),
        ("due", since(row.ready_at)),
        ("started", since(row.started_at)),
        ("ended", since(row.ended_at)),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            let fact = printable(&fact).replace('\n', "\n          ");
            output::line(format_args!("{name:<9} {fact}"))?;
        }
    }
    Ok(())
}

/// Explains why a job is not running, with the command that helps.
pub(crate) fn why(waiting: &Waiting, now: Timestamp) -> String {
    let words = waiting.in_words(now);
    match waiting {
        Waiting::PausedQueue { queue } => format!("{words}; `milepost queues resume {queue}` resumes it"),
        _ => words,
    }
}

/// Describes the schedule and the tick that created the job.
fn tick(row: &JobRow, now: Timestamp) -> Option<String> {
    let schedule = schedule_of_key(row.key.as_deref()?)?;
    Some(format!("{schedule}, tick of {}", exact(row.nominal_at?, now)))
}

fn share(progress: &Progress) -> String {
    let mut words = match progress.total {
        Some(total) if total > 0 => {
            let percent = i128::from(progress.done) * 100 / i128::from(total);
            format!("{} of {total} ({percent} %)", progress.done)
        }
        _ => progress.done.to_string(),
    };
    if let Some(message) = &progress.message {
        words.push_str(", ");
        words.push_str(message);
    }
    words
}

fn failure(code: Option<&str>, message: Option<&str>) -> String {
    code.into_iter().chain(message).collect::<Vec<_>>().join(": ")
}

pub(crate) fn print_json(name: &str, json: Option<&str>) -> Result<()> {
    if let Some(json) = json {
        let text = printable(&pretty(json)).replace('\n', "\n  ");
        output::line(format_args!("\n{name}\n  {text}"))?;
    }
    Ok(())
}

pub(crate) fn print_timeline(history: &[HistoryEntry], now: Timestamp) -> Result<()> {
    let mut listing = Listing::new([
        Column::unbroken("WHEN"),
        Column::unbroken("AFTER"),
        Column::unbroken("WHAT"),
        Column::unbroken("STATE"),
        Column::unbroken("ATTEMPT"),
        Column::unbroken("WORKER"),
        Column::new("WHY"),
    ]);
    let mut before: Option<Timestamp> = None;
    for entry in history {
        let after =
            before.map(|before| format!("+{}", length(entry.at.duration_since(before).unsigned_abs())));
        listing.row([
            Field::text(relative(entry.at, now)),
            Field::maybe(after),
            Field::text(entry.verb.as_str()),
            Field::state(entry.to),
            Field::text(entry.attempt.to_string()),
            Field::maybe(entry.worker.map(|worker| worker.to_string())),
            Field::text(reasons(entry)),
        ]);
        before = Some(entry.at);
    }
    output::line("\nhistory")?;
    Ok(listing.print()?)
}

/// Describes the reason in a history entry, and until when the job then waits.
fn reasons(entry: &HistoryEntry) -> String {
    let mut reasons = Vec::new();
    let failure = failure(entry.error_code.as_deref(), entry.error_message.as_deref());
    if !failure.is_empty() {
        reasons.push(failure);
    }
    reasons.extend(entry.note.clone());
    if let Some(wait) = entry.ready_at.map(|ready_at| ready_at.duration_since(entry.at))
        && wait.is_positive()
    {
        reasons.push(format!("not before {} later", length(wait.unsigned_abs())));
    }
    reasons.join("; ")
}
