//! `milepost bulk show`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost::bulk::{BulkView, TargetFailure};
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::parsers;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::listing::{JobView, Waiting};
use milepost_core::port::Store;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{failures, words};
use crate::jobs::{print_json, print_timeline, why};
use crate::time::{exact, relative};

/// The number of failures shown.
const FAILURES: u32 = 3;
/// The number of changes shown: a run that is paused overnight has thousands.
const CHANGES: u32 = 12;

const EXAMPLES: &str = "\
Examples:
  milepost bulk show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost bulk show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --json | jq .throttle";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The run's full id
    #[arg(value_parser = parsers::job_id)]
    id: JobId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A run and its related data, in the JSON output.
#[derive(Serialize)]
struct BulkDocument<'a> {
    #[serde(flatten)]
    view: &'a BulkView,
    /// The completed share, from 0 to 1.
    share: Option<f64>,
    rows_per_busy_s: Option<f64>,
    payload: Option<&'a RawValue>,
    waiting_for: Option<&'a Waiting>,
    failures: &'a [TargetFailure],
    history: &'a [HistoryEntry],
}

pub(super) async fn run(args: &ShowArgs, store: &dyn Store) -> Result<Outcome> {
    let view = super::view(args.id, store).await?;
    let job = store.job(args.id).await?;
    let failures = store.bulk_failures(args.id, 0, FAILURES).await?;
    if args.json {
        let history = store.complete_history(args.id).await?;
        output::json(&BulkDocument {
            view: &view,
            share: view.share(),
            rows_per_busy_s: view.rows_per_busy_s(),
            payload: job.as_ref().map(|job| job.payload.as_ref()),
            waiting_for: job.as_ref().and_then(|job| job.waiting_for.as_ref()),
            failures: &failures,
            history: &history,
        })?;
        return Ok(Outcome::Done);
    }
    let now = Timestamp::now();
    print_facts(&view, job.as_ref(), now)?;
    print_failures(&view, &failures)?;
    print_json("parameters", job.as_ref().map(|job| job.payload.get()))?;
    let history = store.history(args.id, HistoryPart::Newest { limit: CHANGES + 1 }).await?;
    let earlier = history.len().saturating_sub(CHANGES as usize);
    print_timeline(&history[earlier..], now)?;
    if earlier > 0 {
        output::note(format_args!("earlier changes: milepost jobs show {}", view.id));
    }
    Ok(Outcome::Done)
}

fn print_facts(view: &BulkView, job: Option<&JobView>, now: Timestamp) -> Result<()> {
    let stopping = view.stopping.map_or_else(String::new, |verb| format!(", asked to {verb}"));
    let waiting = job.and_then(|job| job.waiting_for.as_ref());
    let when = |time: Option<Timestamp>| time.map(|time| exact(time, now));
    let facts = [
        ("bulk job", Some(view.id.to_string())),
        ("name", Some(name(view))),
        ("group", view.group.as_ref().map(|group| format!("{group}, priority {}", view.priority))),
        ("state", Some(format!("{}{stopping}", view.state))),
        ("turn", turn(view, now)),
        ("waits", waiting.map(|waiting| why(waiting, now))),
        ("effects", view.effects.map(|effects| effects.in_words().to_owned())),
        ("targets", view.place.as_ref().map(|place| format!("on the {place}"))),
        ("progress", view.started_at.map(|_| words::progress(view))),
        ("file", view.file.as_ref().map(|file| format!("{}, {} rows", file.name, words::count(file.rows)))),
        ("cursor", cursor(view)),
        ("chunks", chunks(view)),
        ("speed", speed(view, now)),
        ("held by", held_now(view, now)),
        ("held", (view.held_ms > 0).then(|| format!("{} in all", words::span(view.held_ms)))),
        ("set", words::settings(&view.settings)),
        ("retry of", view.retry_of.map(|job| format!("the failures of {job}"))),
        ("attempt", job.map(|job| format!("{} of {}", job.row.attempt, job.row.max_attempts))),
        ("created", when(Some(view.created_at))),
        ("due", when(view.due_at)),
        ("started", when(view.started_at)),
        ("moved", when(view.updated_at.filter(|_| view.ended_at.is_none()))),
        ("ended", when(view.ended_at.or_else(|| job?.row.ended_at))),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            let fact = printable(&fact).replace('\n', "\n           ");
            output::line(format_args!("{name:<10} {fact}"))?;
        }
    }
    Ok(())
}

fn name(view: &BulkView) -> String {
    let labels: Vec<&str> = view.r#type.iter().chain(&view.category).map(String::as_str).collect();
    if labels.is_empty() { view.name.clone() } else { format!("{} ({})", view.name, labels.join(", ")) }
}

fn turn(view: &BulkView, now: Timestamp) -> Option<String> {
    match (words::turn(view, now), view.next) {
        (turn, Some(_)) if !turn.starts_with("in ") => {
            Some(format!("{turn} of the runs that wait for the group"))
        }
        (turn, None) if turn == "holds it" => Some("holds its group".to_owned()),
        _ => None,
    }
}

fn cursor(view: &BulkView) -> Option<String> {
    let upper = view.upper.as_ref().map_or_else(String::new, |upper| format!("; the last target is {upper}"));
    match &view.cursor {
        Some(cursor) => Some(format!("all up to {cursor} is done{upper}")),
        None => view.upper.as_ref().map(|upper| format!("at the beginning; the last target is {upper}")),
    }
}

fn chunks(view: &BulkView) -> Option<String> {
    let (rows, ms) = (view.chunk_rows?, view.chunk_ms?);
    let (chunks, rows) = (words::count(view.counts.chunks), words::count(rows));
    Some(format!("{chunks}, now of {rows} rows; the last one took {ms} ms"))
}

/// Describes the rate while chunks ran, and the rate including all pauses.
fn speed(view: &BulkView, now: Timestamp) -> Option<String> {
    let busy = words::rate(view.rows_per_busy_s()?);
    let until = view.ended_at.or(view.updated_at).unwrap_or(now);
    let passed = Duration::try_from(until.duration_since(view.started_at?)).ok()?.as_secs_f64();
    if passed < 1.0 {
        return Some(format!("{busy} while chunks ran"));
    }
    let over_all = words::rate(view.passed() as f64 / passed);
    Some(format!("{busy} while chunks ran ({}), {over_all} overall", words::span(view.busy_ms)))
}

fn held_now(view: &BulkView, now: Timestamp) -> Option<String> {
    let throttle = view.throttle.as_ref()?;
    let since = view.throttle_since.map_or_else(String::new, |at| format!(" (since {})", relative(at, now)));
    Some(format!("{throttle}{since}"))
}

fn print_failures(view: &BulkView, failures: &[TargetFailure]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    output::line("\nfailures")?;
    failures::print(failures)?;
    if view.counts.failed > u64::from(FAILURES) {
        output::note(format_args!("all of them: milepost bulk failures {}", view.id));
    }
    Ok(())
}
