//! `milepost bulk start`.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use milepost::{Enqueued, NewJob, Priority, StartAt};
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_core::listing::Waiting;
use milepost_core::port::Store;
use serde::Serialize;

use super::parameters::ParametersArgs;
use super::sources::Scene;
use super::staged::{FileArgs, Staged};
use super::words;
use crate::jobs::why;
use crate::redis::RedisArgs;

const EXAMPLES: &str = "\
One run of a group is active at a time; others wait for it. A parameter that
SQL of the bulk job reads as :place is given as --param place=4711.

A bulk job with columns reads its targets from a file (--from), a .csv with a
header or a .jsonl. If a line is bad, file, line and column are reported and
nothing is started; with --skip-bad, bad lines are written to a new file.

Examples:
  milepost bulk start popular --param topic=4
  milepost bulk start by-place --payload '{\"place\": 4711, \"km\": 20}' --key storm-7
  milepost bulk start letter --from members.csv --param text='Dear all'
  milepost bulk start announce --at 2026-05-01T20:00:00Z --priority 1";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StartArgs {
    /// A bulk job of the configuration, or one that a worker has stored
    name: String,
    #[command(flatten)]
    parameters: ParametersArgs,
    #[command(flatten)]
    file: FileArgs,
    /// A key that at most one run of the bulk job has
    #[arg(long)]
    key: Option<String>,
    /// The earliest start: a time such as 2026-05-01T09:00:00Z, or a delay such as 'in 10m'
    #[arg(long, value_name = "TIME", value_parser = parsers::start_at)]
    at: Option<StartAt>,
    /// The priority within the group, from 1 (first) to 4 (last) [default: the definition's]
    #[arg(long, value_parser = parsers::priority)]
    priority: Option<Priority>,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: StartArgs, scene: &Scene, store: &dyn Store) -> Result<Outcome> {
    let (name, store) = (&args.name, args.reason.acting(store)?);
    let store = store.as_ref();
    let definition = scene.definition(name, store).await?;
    let parameters = args.parameters.read()?;
    match scene.entry(name) {
        Some(entry) => entry.check_parameters(&parameters, entry.dialect(scene.address.dialect()))?,
        None => definition.check_parameters(&parameters)?,
    }
    let file = args.file.open(&definition)?;
    let mut job = definition.direct(NewJob::new(name, &parameters)?);
    job.key = args.key;
    job.start = args.at.unwrap_or_default();
    job.priority = args.priority.unwrap_or(job.priority);
    let teller = args.redis.teller();
    let staged = match &file {
        Some(file) => Some(file.start(store, &definition, &job).await?),
        None => None,
    };
    let started = match &staged {
        Some(staged) => staged.started,
        None => store.start_bulk(&job).await?,
    };
    if !started.duplicate {
        teller.ready().await;
    }
    tell(started, staged.as_ref(), args.json)?;
    // A started run that waits is not an error.
    if let Some(waiting) = store.job(started.job).await?.and_then(|view| view.waiting_for)
        && !matches!(waiting, Waiting::Turn)
    {
        output::note(format_args!("it waits: {}", why(&waiting, Timestamp::now())));
    }
    Ok(Outcome::Done)
}

/// The JSON output, with the result of staging the file.
#[derive(Serialize)]
struct StartedRun {
    #[serde(flatten)]
    started: Enqueued,
    /// The number of staged rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// The number of bad lines that were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    bad: Option<u64>,
}

fn tell(started: Enqueued, staged: Option<&Staged>, json: bool) -> Result<()> {
    let job = started.job;
    if json {
        let rows = staged.map(|staged| if started.duplicate { 0 } else { staged.rows });
        let answer = StartedRun { started, rows, bad: staged.map(|staged| staged.bad) };
        output::heard_or_not(output::json(&answer))?;
    } else if started.duplicate {
        output::change(format_args!("{job}  duplicate: this key existed before; nothing was changed"))?;
    } else if let Some(Staged { rows, bad, .. }) = staged {
        let rows = words::count(*rows);
        output::change(format_args!("{job}  started over {rows} rows, {bad} bad lines"))?;
    } else {
        output::change(format_args!("{job}  started"))?;
    }
    Ok(())
}
