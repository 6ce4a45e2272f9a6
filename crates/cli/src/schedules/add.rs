//! `milepost schedules add`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args, ValueEnum};
use jiff::Timestamp;
use milepost_cli_support::operator::{self, ReasonArgs};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::batch::start::NewBatch;
use milepost_core::error::StoreError;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority, QUEUE_DEFAULT};
use milepost_core::schedule::{MISFIRE_MAX_DEFAULT, Makes, Misfire, Schedule, Source, Spec, ZONE_DEFAULT};
use serde_json::value::RawValue;

use crate::time::exact;

const HELP: &str = "\
Cron fields: [second] minute hour day-of-month month day-of-week, with *, lists,
ranges, steps and names (MON-FRI, JAN). When both days are restricted, either
is enough. L is the last day, 15W the weekday nearest to the 15th, MON#1 the
first Monday, FRI#L the last Friday. Macros: @hourly @daily @midnight @weekly
@monthly @yearly @annually.

When clocks change, fixed hours tick once a day: a skipped time ticks at the
first instant after it, a repeated time at its first occurrence. Hours that
begin with * follow the local clock. See `milepost schedules preview`.

Ticks are missed if no worker runs for longer than --misfire-grace.

With --dag, each tick starts a batch of the latest version of that DAG. Its key
contains schedule and tick, so a tick has at most one batch. Strings in --input
may contain expressions over the tick: ${ tick.date } is its local date.

Examples:
  milepost schedules add nightly --cron '0 3 * * *' --zone Europe/Berlin --kind report
  milepost schedules add poll --every 10m --kind poll --payload '{\"feed\": 7}'
  milepost schedules add invoices --cron '0 6 1 * *' --kind invoice \\
      --misfire all --misfire-max 12 --group invoices
  milepost schedules add settlement --cron '30 4 * * *' --dag settlement --zone Europe/Berlin \\
      --input '{\"day\": \"${ tick.date }\"}'";

#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("makes").required(true))]
pub(crate) struct AddArgs {
    /// The schedule's name
    name: String,

    #[command(flatten)]
    when: super::spec::When,
    /// The time zone of the cron expression: an IANA name
    #[arg(long, default_value = ZONE_DEFAULT, conflicts_with = "every")]
    zone: String,

    /// Which handler runs the jobs
    #[arg(long, group = "makes")]
    kind: Option<String>,
    /// The DAG of which each tick starts a batch
    #[arg(long, group = "makes")]
    dag: Option<String>,
    /// The input of each batch, as JSON, with expressions over `tick` [default: {}]
    #[arg(long, value_name = "JSON", requires = "dag")]
    input: Option<String>,
    /// The payload of each job, as JSON
    #[arg(long, value_name = "JSON", default_value = "null", conflicts_with = "dag")]
    payload: String,
    /// The queue of the jobs
    #[arg(long, default_value = QUEUE_DEFAULT, conflicts_with = "dag")]
    queue: String,
    /// The priority within the queue, from 1 (first) to 4 (last)
    #[arg(long, default_value = "2", value_parser = parsers::priority, conflicts_with = "dag")]
    priority: Priority,
    /// The maximum number of attempts of each job; a crash of its worker uses one
    #[arg(long, value_name = "N", default_value_t = MAX_ATTEMPTS_DEFAULT, conflicts_with = "dag")]
    max_attempts: u32,
    /// The group of the jobs; jobs of a group run one at a time, unless a limit allows more
    #[arg(long, conflicts_with = "dag")]
    group: Option<String>,
    /// The time limit of one attempt
    #[arg(long, value_name = "DURATION", conflicts_with = "dag", value_parser = parsers::positive_duration)]
    timeout: Option<Duration>,

    /// The handling of missed ticks
    #[arg(long, value_enum, default_value_t = Policy::Once)]
    misfire: Policy,
    /// The maximum number of missed ticks that get a job or a batch, the newest ones; needs --misfire all
    #[arg(long, value_name = "N", default_value_t = MISFIRE_MAX_DEFAULT)]
    misfire_max: u32,
    /// A tick that is late by at most this time is not missed
    #[arg(long, value_name = "DURATION", value_parser = parsers::duration, default_value = "60s")]
    misfire_grace: Duration,

    #[command(flatten)]
    reason: ReasonArgs,
    /// Replace the schedule with this name; a paused schedule stays paused
    #[arg(long)]
    replace: bool,
}

/// What becomes of ticks that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// They are dropped
    Skip,
    /// One job or batch for all of them, with the nominal time of the last
    Once,
    /// One each, up to --misfire-max
    All,
}

impl AddArgs {
    fn schedule(self) -> Result<Schedule> {
        let spec: Spec = self.when.spec(&self.zone)?;
        let makes = self.makes()?;
        let misfire = match self.misfire {
            Policy::Skip => Misfire::Skip,
            Policy::Once => Misfire::Once,
            Policy::All => Misfire::All { max: self.misfire_max },
        };
        let schedule =
            Schedule::new(self.name, spec, makes).misfire(misfire).misfire_grace(self.misfire_grace);
        schedule.check()?;
        Ok(schedule)
    }

    fn makes(&self) -> Result<Makes> {
        if let Some(dag) = &self.dag {
            let input = self.input.clone().unwrap_or_else(|| "{}".to_owned());
            // As it is written: numbers keep their digits.
            let input = RawValue::from_string(input).context("--input is not JSON")?;
            return Ok(NewBatch::new(dag, &input)?.into());
        }
        let mut job = NewJob::from_json(self.kind.clone().unwrap_or_default(), self.payload.clone())?
            .queue(&self.queue)
            .priority(self.priority)
            .max_attempts(self.max_attempts);
        job.group.clone_from(&self.group);
        job.timeout = self.timeout;
        Ok(job.into())
    }
}

pub(super) async fn run(args: AddArgs, address: &StoreAddress) -> Result<Outcome> {
    let (replace, reason) = (args.replace, args.reason.reason.clone());
    let schedule = args.schedule()?;
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let name = &schedule.name;
    let before = store.schedule(name).await?;
    if let Some(missing) = store.input_of_ticks(&schedule).await?.check().map_err(StoreError::from)? {
        output::note(format_args!("{missing}. Until then its ticks start nothing"));
    }
    let acting = operator::acting_because(store.as_ref(), reason.as_deref())?;
    if replace {
        acting.put_schedule(&schedule, Source::Operator).await?;
    } else if !acting.create_schedule(&schedule).await? {
        bail!("there is a schedule {name} already; give --replace to replace it");
    }
    if before.as_ref().is_some_and(|view| view.source == Source::Config) {
        output::note(format_args!(
            "schedule {name} came from a configuration, which is ignored until you remove the schedule"
        ));
    }
    let words = if before.is_some() { "is replaced" } else { "is created" };
    let next_at = store.schedule(name).await?.and_then(|view| view.next_at);
    match next_at {
        Some(next_at) => {
            let next_at = exact(next_at, Timestamp::now());
            output::change(format_args!("schedule {name} {words}; next tick {next_at}"))?;
        }
        None => output::change(format_args!("schedule {name} {words}"))?,
    }
    Ok(Outcome::Done)
}
