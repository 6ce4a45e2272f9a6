//! `milepost schedules show`.

use anyhow::Result;
use clap::Args;
use milepost_cli_support::output::{self, Outcome, printable};
use milepost_core::port::Store;
use milepost_core::schedule::{Makes, ScheduleView};

use super::backfill::found;
use super::list::{ScheduleDocument, Surroundings};
use super::operate::none;
use crate::time::{exact, length};

const EXAMPLES: &str = "\
Examples:
  milepost schedules show nightly
  milepost schedules show nightly --json | jq .next_at";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The schedule's name
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ShowArgs, store: &dyn Store) -> Result<Outcome> {
    let view = store.schedule(&args.name).await?.ok_or_else(|| none(&args.name))?;
    let scene = Surroundings::look(store).await?;
    let obstacle = scene.obstacle(&view);
    if args.json {
        output::json(&ScheduleDocument { view: &view, obstacle })?;
    } else {
        print(&view, obstacle, last_made(&view, store).await?, &scene)?;
    }
    Ok(Outcome::Done)
}

/// Returns the id and the state of the job or batch that the last tick created.
async fn last_made(view: &ScheduleView, store: &dyn Store) -> Result<Option<String>> {
    let Some(last_at) = view.last_at else { return Ok(None) };
    let Ok(order) = view.schedule.tick(last_at) else { return Ok(None) };
    Ok(found(&order, store).await?.map(|(id, state)| format!("{id} ({state})")))
}

fn print(
    view: &ScheduleView,
    obstacle: Option<String>,
    last_made: Option<String>,
    scene: &Surroundings,
) -> Result<()> {
    let ScheduleView { schedule, .. } = view;
    let when = |time: Option<jiff::Timestamp>| time.map(|time| exact(time, scene.now));
    let facts = [
        ("schedule", Some(format!("{}, created by {}", schedule.name, view.source.as_str()))),
        ("ticks", Some(format!("{}, in {}", schedule.spec, schedule.spec.zone_name()))),
        ("status", Some(obstacle.unwrap_or_else(|| "ok".to_owned()))),
        ("next", when(view.next_at.filter(|_| view.paused_at.is_none()))),
        ("last", when(view.last_at)),
        ("last made", last_made),
        ("made", Some(format!("{}; {} ticks created nothing", view.fired, view.dropped))),
        ("misfire", Some(format!("{} after {}", schedule.misfire, length(schedule.misfire_grace)))),
    ];
    for (name, fact) in facts.into_iter().chain(facts_of(&schedule.makes)) {
        if let Some(fact) = fact {
            output::line(format_args!("{name:<9} {}", printable(&fact)))?;
        }
    }
    Ok(())
}

/// Returns the settings of the jobs or batches that the schedule creates, as labels and values.
fn facts_of(makes: &Makes) -> Vec<(&'static str, Option<String>)> {
    match makes {
        Makes::Job(job) => vec![
            ("kind", Some(job.kind.clone())),
            ("queue", Some(format!("{}, priority {}", job.queue, job.priority.get()))),
            ("group", job.group.clone()),
            ("attempts", Some(job.max_attempts.to_string())),
            ("timeout", job.timeout.map(length)),
            ("payload", Some(job.payload.get().to_owned())),
        ],
        Makes::Batch(batch) => vec![
            ("dag", Some(format!("{}, the latest version", batch.dag))),
            ("input", Some(batch.input.get().to_owned())),
        ],
    }
}
