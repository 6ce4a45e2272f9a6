//! `milepost batch show`.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchDetail, BatchEntry, BatchView, TaskFilter, TaskView};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;
use serde::Serialize;

use super::find::{self, WhichArgs};
use super::{tasks, words};
use crate::jobs::print_json;
use crate::time::{exact, length, relative};

/// The number of history entries shown.
const ENTRIES: usize = 12;
/// The number of entries read at a time.
const PAGE: u32 = 1000;
/// The number of tasks of the critical path that are shown.
const PATH: usize = 12;

const EXAMPLES: &str = "\
Tasks that may need attention come first: failed, aborted, active, due. WAITED
is the time from ready to claimed by a worker, RAN the duration of the last
attempt so far.

Examples:
  milepost batch show 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost batch show settlement --key 2026-11-01 --state failed
  milepost batch show settlement --key 2026-11-01 --json | jq .counts";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// List all tasks
    #[arg(long, conflicts_with = "states")]
    all: bool,
    /// List all tasks in this state; may be given several times
    #[arg(long = "state", value_name = "STATE", value_parser = task_state())]
    states: Vec<TaskState>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn task_state() -> impl TypedValueParser<Value = TaskState> {
    PossibleValuesParser::new(TaskState::ALL.iter().map(|state| state.as_str()))
        .try_map(|name| name.parse::<TaskState>())
}

/// A batch and its related data, in the JSON output.
#[derive(Serialize)]
struct BatchDocument<'a> {
    #[serde(flatten)]
    detail: &'a BatchDetail,
    /// The path through the DAG that took longest so far.
    critical_path: Option<&'a CriticalPath>,
    /// The requested tasks, or by default the first ones that need attention.
    tasks: &'a [TaskView],
    history: &'a VecDeque<BatchEntry>,
}

/// The path through the DAG that took longest so far.
#[derive(Serialize)]
struct CriticalPath {
    ms: u64,
    tasks: Vec<OnPath>,
}

#[derive(Serialize)]
struct OnPath {
    key: String,
    ms: u64,
}

pub(super) async fn run(args: &ShowArgs, store: &dyn BatchStore) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let id = subject.row.id;
    let Some(detail) = store.batch(id).await? else {
        return Err(StoreError::from(InvalidBatch::NoSuchBatch(id)).into());
    };
    let now = Timestamp::now();
    let tasks = tasks::wanted(&subject, args.all, &args.states, store).await?;
    let path = critical_path(&subject, now, store).await?;
    let (history, earlier) = history(id, store).await?;
    if args.json {
        output::json(&BatchDocument {
            detail: &detail,
            critical_path: path.as_ref(),
            tasks: &tasks.shown,
            history: &history,
        })?;
        return Ok(Outcome::Done);
    }
    print_facts(&detail, now)?;
    print_waits(&tasks.shown, now)?;
    print_remedies(&detail.row, &tasks.shown)?;
    tasks::print(&tasks, now)?;
    print_path(path.as_ref())?;
    print_json("input", Some(detail.input.get()))?;
    print_history(&history, now)?;
    if earlier > 0 {
        output::note(format_args!("{} earlier entries are omitted", words::count(earlier)));
    }
    Ok(Outcome::Done)
}

fn print_facts(BatchDetail { row, started_by, .. }: &BatchDetail, now: Timestamp) -> Result<()> {
    let of = |parent: &milepost_core::batch::listing::ParentTask| {
        let what = if parent.items { "the items of task" } else { "task" };
        format!("{what} {} of batch {}", parent.key.as_deref().unwrap_or(words::GONE), parent.batch)
    };
    let facts = [
        ("batch", Some(row.id.to_string())),
        ("dag", Some(format!("{}, version {} ({})", row.dag, row.number, words::short(row.version)))),
        ("is", row.parent.as_ref().map(of)),
        ("key", row.key.clone()),
        (
            "event",
            started_by.as_ref().map(|by| format!("{} of the subscription {}", by.event, by.subscription)),
        ),
        ("state", Some(words::standing(row))),
        ("progress", Some(words::bar(&row.counts))),
        ("tasks", Some(words::counts(&row.counts))),
        ("run", (row.generation > 1).then(|| format!("rerun {}", row.generation - 1))),
        ("tick", row.nominal().map(|tick| format!("{}, {}", exact(tick.at, now), tick.dated()))),
        ("started", Some(exact(row.created_at, now))),
        ("moved", row.ended_at.is_none().then(|| exact(row.updated_at, now))),
        ("ended", row.ended_at.map(|at| exact(at, now))),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            output::line(format_args!("{name:<9} {}", printable(&fact)))?;
        }
    }
    Ok(())
}

/// Prints what the shown tasks wait for, since when and until when.
fn print_waits(tasks: &[TaskView], now: Timestamp) -> Result<()> {
    let waits: Vec<_> = tasks.iter().filter_map(|task| Some((task, task.wait.as_ref()?))).collect();
    if waits.is_empty() {
        return Ok(());
    }
    output::line("\nwaits for")?;
    for (task, wait) in waits {
        let what = match &wait.signal {
            Some(signal) => format!("the signal {signal}"),
            None => "a time".to_owned(),
        };
        let until = match wait.until {
            Some(until) => format!(", until {}", exact(until, now)),
            None => String::new(),
        };
        let (key, since) = (&task.key, exact(wait.since, now));
        let text = format!("{key}: {what}, since {since}{until}");
        output::line(format_args!("  {}", printable(&text)))?;
    }
    Ok(())
}

fn print_remedies(row: &BatchView, tasks: &[TaskView]) -> Result<()> {
    let stuck = |task: &&TaskView| matches!(task.state, TaskState::Failed | TaskState::Aborted);
    let stuck: Vec<TaskView> = tasks.iter().filter(stuck).cloned().collect();
    let remedies = words::remedies(row, &stuck);
    if remedies.is_empty() {
        return Ok(());
    }
    output::line("\nwhat to do")?;
    for (command, effect) in remedies {
        output::line(format_args!("  {}\n    {effect}", printable(&command)))?;
    }
    Ok(())
}

/// Computes the critical path from the durations of tasks so far; tasks that did not run count as zero.
async fn critical_path(
    subject: &Subject,
    now: Timestamp,
    store: &dyn BatchStore,
) -> Result<Option<CriticalPath>> {
    let Some(dag) = &subject.dag else { return Ok(None) };
    let mut took = vec![Duration::ZERO; dag.graph().len()];
    for task in find::all_tasks(subject.row.id, TaskFilter::default(), store).await? {
        if let (Some(slot), (_, Some(ran))) = (took.get_mut(task.task as usize), words::times(&task, now)) {
            *slot = ran;
        }
    }
    let path = dag.graph().critical_path(|task| took[task as usize]);
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let ran = path.tasks.into_iter().filter(|&task| !took[task as usize].is_zero());
    let on_path = |task: u32| OnPath { key: dag.graph().key(task).to_owned(), ms: ms(took[task as usize]) };
    let path = CriticalPath { ms: ms(path.length), tasks: ran.map(on_path).collect() };
    Ok((!path.tasks.is_empty()).then_some(path))
}

fn print_path(path: Option<&CriticalPath>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let span = |ms| length(Duration::from_millis(ms));
    let steps: Vec<String> = path
        .tasks
        .iter()
        .take(PATH)
        .map(|task| format!("{} {}", printable(&task.key), span(task.ms)))
        .collect();
    let more = match path.tasks.len() - steps.len() {
        0 => String::new(),
        more => format!(" → … ({more} more)"),
    };
    output::line(format_args!("\ncritical path so far: {}\n  {}{more}", span(path.ms), steps.join(" → ")))?;
    Ok(())
}

/// Returns the last entries, and the number of entries before them.
async fn history(id: BatchId, store: &dyn BatchStore) -> Result<(VecDeque<BatchEntry>, u64)> {
    let (mut last, mut earlier, mut after) = (VecDeque::new(), 0, 0);
    loop {
        let page = store.batch_history(id, after, PAGE).await?;
        let full = page.len() == PAGE as usize;
        after = page.last().map_or(after, |entry| entry.pos);
        last.extend(page);
        while last.len() > ENTRIES {
            last.pop_front();
            earlier += 1;
        }
        if !full {
            return Ok((last, earlier));
        }
    }
}

fn print_history(history: &VecDeque<BatchEntry>, now: Timestamp) -> Result<()> {
    if history.is_empty() {
        return Ok(());
    }
    let mut listing = Listing::new([
        Column::unbroken("WHEN"),
        Column::new("TASK"),
        Column::unbroken("WHAT"),
        Column::unbroken("STATE"),
        Column::new("WHY"),
    ]);
    for entry in history {
        listing.row([
            Field::text(relative(entry.at, now)),
            Field::text(entry.key.as_deref().unwrap_or("(the batch)")),
            Field::text(entry.verb.as_str()),
            Field::text(&entry.to),
            Field::maybe(entry.note.as_deref()),
        ]);
    }
    output::line("\nhistory")?;
    Ok(listing.print()?)
}
