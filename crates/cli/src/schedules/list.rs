//! `milepost schedules list`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::listing::QueueView;
use milepost_core::port::Store;
use milepost_core::schedule::{JobTemplate, Makes, Refusal, ScheduleView, Spec};
use milepost_core::worker::WorkerView;
use serde::Serialize;

use crate::time::relative;

const EXAMPLES: &str = "\
STATUS shows why a schedule does not tick, why its last tick started no batch,
or why its jobs would not run.

Examples:
  milepost schedules list
  milepost schedules list --json | jq -r '.[] | select(.paused_at) | .name'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// A schedule in the JSON output.
#[derive(Serialize)]
pub(super) struct ScheduleDocument<'a> {
    #[serde(flatten)]
    pub(super) view: &'a ScheduleView,
    /// Why the schedule does not tick, or why its jobs would not run.
    pub(super) obstacle: Option<String>,
}

pub(super) async fn run(args: &ListArgs, store: &dyn Store) -> Result<Outcome> {
    let views = store.schedules().await?;
    let scene = Surroundings::look(store).await?;
    if args.json {
        let document = |view| ScheduleDocument { view, obstacle: scene.obstacle(view) };
        output::json(&views.iter().map(document).collect::<Vec<_>>())?;
    } else if views.is_empty() {
        output::note("no schedules; `milepost schedules add` creates one");
    } else {
        print(&views, &scene)?;
    }
    Ok(Outcome::Done)
}

fn print(views: &[ScheduleView], scene: &Surroundings) -> Result<()> {
    let mut listing = Listing::new([
        Column::new("NAME"),
        Column::new("TICKS"),
        Column::new("MAKES"),
        Column::unbroken("LAST"),
        Column::unbroken("NEXT"),
        Column::new("STATUS"),
    ]);
    let when = |time: Option<Timestamp>| Field::maybe(time.map(|time| relative(time, scene.now)));
    for view in views {
        let next_at = view.next_at.filter(|_| view.paused_at.is_none());
        listing.row([
            Field::text(&view.schedule.name),
            Field::text(ticks(&view.schedule.spec)),
            Field::text(makes(&view.schedule.makes)),
            when(view.last_at),
            when(next_at),
            scene.obstacle(view).map_or_else(|| Field::text("ok"), Field::warning),
        ]);
    }
    Ok(listing.print()?)
}

/// Describes what the schedule creates: a kind, or a batch of a DAG.
fn makes(makes: &Makes) -> String {
    match makes {
        Makes::Job(job) => job.kind.clone(),
        Makes::Batch(batch) => format!("batch of {}", batch.dag),
    }
}

/// Describes when the schedule ticks, with the time zone if it is not UTC.
pub(super) fn ticks(spec: &Spec) -> String {
    match (spec, spec.zone_name()) {
        (Spec::Every(_), _) | (_, "UTC") => spec.to_string(),
        (Spec::Cron(_), zone) => format!("{spec} {zone}"),
    }
}

/// The parts of the store that decide whether jobs of a schedule run: workers and queues.
pub(super) struct Surroundings {
    pub(super) now: Timestamp,
    workers: Vec<WorkerView>,
    queues: Vec<QueueView>,
}

impl Surroundings {
    pub(super) async fn look(store: &dyn Store) -> Result<Self> {
        let now = store.clock().await?.now;
        let mut workers = store.workers().await?;
        workers.retain(|worker| worker.ended_at.is_none());
        Ok(Self { now, workers, queues: store.queues().await? })
    }

    /// Returns why the schedule does not tick, why its last batch was not started, or why its jobs would not run.
    pub(super) fn obstacle(&self, view: &ScheduleView) -> Option<String> {
        if let Some(since) = view.paused_at {
            return Some(format!("paused {}", relative(since, self.now)));
        }
        if self.workers.is_empty() {
            return Some("no active worker to run its ticks".to_owned());
        }
        if let Some(Refusal { at, why }) = &view.refused {
            return Some(format!("the tick at {at} started no batch: {why}"));
        }
        match &view.schedule.makes {
            Makes::Job(job) => self.obstacle_of_job(job),
            Makes::Batch(_) => None,
        }
    }

    fn obstacle_of_job(&self, JobTemplate { kind, queue, .. }: &JobTemplate) -> Option<String> {
        let paused = |known: &QueueView| known.name == *queue && known.paused_at.is_some();
        if self.queues.iter().any(paused) {
            return Some(format!("queue {queue} is paused"));
        }
        let serves = |worker: &WorkerView| worker.queues.contains(queue) && worker.kinds.contains(kind);
        if !self.workers.iter().any(serves) {
            return Some(format!("no active worker serves kind {kind} in queue {queue}"));
        }
        None
    }
}
