//! `milepost schedules show`.

use anyhow::Result;
use clap::Args;
use milepost_core::listing::JobFilter;
use milepost_core::port::Store;
use milepost_core::schedule::ScheduleView;

use super::list::{ScheduleDocument, Surroundings};
use super::operate::none;
use crate::output::{self, Outcome, printable};
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
        print(&view, obstacle, last_job(&view, store).await?, &scene)?;
    }
    Ok(Outcome::Done)
}

/// The job of the last tick and where it stands.
async fn last_job(view: &ScheduleView, store: &dyn Store) -> Result<Option<String>> {
    let Some(last_at) = view.last_at else { return Ok(None) };
    let filter = JobFilter { key: view.schedule.tick(last_at).key, limit: 1, ..JobFilter::default() };
    let jobs = store.jobs(&filter).await?;
    Ok(jobs.first().map(|job| format!("{} ({})", job.id, job.state)))
}

fn print(
    view: &ScheduleView,
    obstacle: Option<String>,
    last_job: Option<String>,
    scene: &Surroundings,
) -> Result<()> {
    let ScheduleView { schedule, .. } = view;
    let job = &schedule.job;
    let when = |time: Option<jiff::Timestamp>| time.map(|time| exact(time, scene.now));
    let facts = [
        ("schedule", Some(format!("{}, made by {}", schedule.name, view.source.as_str()))),
        ("ticks", Some(format!("{}, by the clock of {}", schedule.spec, schedule.spec.zone_name()))),
        ("status", Some(obstacle.unwrap_or_else(|| "ok".to_owned()))),
        ("next", when(view.next_at.filter(|_| view.paused_at.is_none()))),
        ("last", when(view.last_at)),
        ("last job", last_job),
        ("jobs", Some(format!("{} made, {} missed ticks made none", view.fired, view.dropped))),
        ("misfire", Some(format!("{} after {}", schedule.misfire, length(schedule.misfire_grace)))),
        ("kind", Some(job.kind.clone())),
        ("queue", Some(format!("{}, priority {}", job.queue, job.priority.get()))),
        ("group", job.group.clone()),
        ("attempts", Some(job.max_attempts.to_string())),
        ("timeout", job.timeout.map(length)),
        ("payload", Some(job.payload.get().to_owned())),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            output::line(format_args!("{name:<9} {}", printable(&fact)))?;
        }
    }
    Ok(())
}
