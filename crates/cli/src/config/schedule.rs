//! `[[schedules]]`: recurring jobs and batches.

use std::collections::HashSet;

use anyhow::{Context, Result};
use milepost_cli_support::parsers;
use milepost_core::batch::start::NewBatch;
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX, Priority};
use milepost_core::json::{plain_option, plain_value};
use milepost_core::schedule::{
    InvalidSchedule, MISFIRE_MAX_DEFAULT, Makes, Misfire, Schedule, Spec, ZONE_DEFAULT,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;
use super::kind;

const ZONE_REMEDY: &str = "write an IANA name such as \"Europe/Berlin\"";

/// A recurring job or batch: exactly one of `kind` and `dag`, with exactly one of `cron` and `every`. Schedules that the file no longer
/// contains are removed when the worker starts. Schedules created by `milepost schedules add` are not changed and take precedence over the
/// file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleEntry {
    /// Its unique name.
    pub(super) name: String,
    /// The times of its ticks: 5 cron fields, 6 with seconds first, or a macro such as `@daily`.
    #[serde(default)]
    pub(super) cron: Option<String>,
    /// The interval of its ticks, in whole seconds.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    pub(super) every: Option<Humane>,
    /// The time zone of `cron`, such as `Europe/Berlin`. The default is `UTC`.
    #[serde(default)]
    pub(super) zone: Option<String>,
    /// The kind of the job that each tick creates; any worker may run it.
    #[serde(default)]
    pub(super) kind: Option<String>,
    /// The DAG of which each tick starts a batch, in its latest version.
    #[serde(default)]
    pub(super) dag: Option<String>,
    /// With `dag`, the input of each batch. Its strings may contain expressions over the tick, written `$${ tick.date }` here. The default
    /// is `{}`.
    #[serde(default, deserialize_with = "plain_option")]
    pub(super) input: Option<Json>,
    /// The payload of each job. The default is `null`.
    #[serde(default, deserialize_with = "plain_value")]
    pub(super) payload: Json,
    /// The queue of the jobs. The default is `default`.
    #[serde(default)]
    pub(super) queue: Option<String>,
    /// The priority within the queue, from 1 (first) to 4 (last). The default is 2.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4))]
    pub(super) priority: Option<u8>,
    /// The maximum number of attempts of each job. The default is 25.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_attempts: Option<u32>,
    /// The group of the jobs.
    #[serde(default)]
    pub(super) group: Option<String>,
    /// The time limit of one attempt.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    pub(super) timeout: Option<Humane>,
    /// The handling of missed ticks: `skip`, `once` (one job or batch for all) or `all`. The default is `once`.
    #[serde(default)]
    #[schemars(extend("enum" = ["skip", "once", "all"]))]
    pub(super) misfire: Option<String>,
    /// With `all`, the maximum number of missed ticks that get a job or a batch, the newest ones. The default is 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) misfire_max: Option<u32>,
    /// A tick that is late by at most this time is not missed. The default is `60s`.
    #[serde(default)]
    pub(super) misfire_grace: Option<Humane>,
}

impl ScheduleEntry {
    /// Returns the schedule of a checked file.
    pub(crate) fn schedule(&self) -> Result<Schedule> {
        self.read().with_context(|| format!("the schedule {}", self.name))
    }

    fn read(&self) -> Result<Schedule> {
        let spec = match self.every {
            Some(every) => Spec::every(every.0)?,
            None => {
                Spec::parse(self.cron.as_deref().unwrap_or(""), self.zone.as_deref().unwrap_or(ZONE_DEFAULT))?
            }
        };
        let makes: Makes = match &self.dag {
            Some(dag) => {
                let empty = || Json::Object(Map::new());
                NewBatch::new(dag, &self.input.clone().unwrap_or_else(empty))?.into()
            }
            None => self.job()?.into(),
        };
        let max = Some(self.misfire_max.unwrap_or(MISFIRE_MAX_DEFAULT));
        let misfire =
            self.misfire.as_deref().map_or(Ok(Misfire::default()), |name| Misfire::named(name, max))?;
        let mut schedule = Schedule::new(&self.name, spec, makes).misfire(misfire);
        if let Some(grace) = self.misfire_grace {
            schedule = schedule.misfire_grace(grace.0);
        }
        schedule.check()?;
        Ok(schedule)
    }

    fn job(&self) -> Result<NewJob> {
        let mut job = NewJob::new(self.kind.as_deref().unwrap_or_default(), &self.payload)?;
        job.queue = self.queue.clone().unwrap_or(job.queue);
        job.priority = self.priority.map_or(Ok(job.priority), Priority::try_from)?;
        job.max_attempts = self.max_attempts.unwrap_or(job.max_attempts);
        job.group.clone_from(&self.group);
        job.timeout = self.timeout.map(|time| time.0);
        Ok(job)
    }
}

pub(super) fn check(schedules: Option<&Node>, faults: &mut Faults) {
    let mut names = HashSet::new();
    for schedule in schedules.map(Node::nodes).unwrap_or_default() {
        check_names(schedule, &mut names, faults);
        check_makes(schedule, faults);
        check_payload(schedule.get("payload"), faults);
        check_input(schedule, faults);
        check_spec(schedule, faults);
        check_misfire(schedule, faults);
    }
}

/// Rejects a payload that no store keeps.
pub(super) fn check_payload(payload: Option<&Node>, faults: &mut Faults) {
    let Some(payload) = payload else { return };
    let job = NewJob::new("payload", &payload.clone().into_json());
    if let Err(refused) = job.and_then(|job| job.check(PAYLOAD_BYTES_MAX)) {
        faults.add(payload.span.start, refused.to_string(), "change the payload");
    }
}

/// Rejects a schedule that creates neither jobs nor batches, or both.
fn check_makes(schedule: &Node, faults: &mut Faults) {
    match (schedule.get("kind"), schedule.get("dag")) {
        (None, None) => faults.add(
            schedule.span.start,
            "the schedule has neither kind nor dag: it would create nothing",
            "add kind = \"report\" for jobs, or dag = \"orders\" for batches",
        ),
        (Some(kind), Some(dag)) => faults.add(
            kind.span.start.max(dag.span.start),
            "the schedule has both kind and dag",
            "keep one of the two; create a second schedule for the other",
        ),
        (None, Some(_)) => {
            for key in ["payload", "queue", "priority", "max_attempts", "group", "timeout"] {
                if let Some(node) = schedule.get(key) {
                    let what = format!("{key} is a setting of jobs, but the schedule starts batches");
                    let remedy =
                        if key == "payload" { "write input" } else { "set it in the tasks of the DAG" };
                    faults.add(node.span.start, what, remedy);
                }
            }
        }
        (Some(_), None) => {
            if let Some(node) = schedule.get("input") {
                faults.add(
                    node.span.start,
                    "input is a setting of batches, but the schedule creates jobs",
                    "write payload",
                );
            }
        }
    }
}

/// Rejects an input with an expression that cannot be read, or that reads something else than the tick.
fn check_input(schedule: &Node, faults: &mut Faults) {
    let (Some(dag), Some(input)) = (schedule.get("dag").and_then(Node::text), schedule.get("input")) else {
        return;
    };
    let checked = || -> Result<()> {
        let batch = NewBatch::new(dag, &input.clone().into_json())?;
        // Only the input can be at fault in this schedule.
        Ok(Schedule::new("input", Spec::cron("@daily", ZONE_DEFAULT)?, batch).check()?)
    };
    if let Err(error) = checked() {
        let remedy = "expressions of an input read the tick, such as $${ tick.date }";
        faults.add(input.span.start, format!("the input cannot be used: {error}"), remedy);
    }
}

pub(super) fn check_misfire(schedule: &Node, faults: &mut Faults) {
    if let Some(max) = schedule.get("misfire_max")
        && schedule.get("misfire").and_then(Node::text) != Some("all")
    {
        let remedy = "add misfire = \"all\", or remove misfire_max";
        faults.add(max.span.start, "misfire_max has an effect only with misfire = \"all\"", remedy);
    }
}

/// Rejects an unknown time zone.
pub(super) fn check_zone(node: &Node, zone: &str, faults: &mut Faults) {
    if let Err(error @ InvalidSchedule::Zone { .. }) = Spec::cron("@daily", zone) {
        faults.add(node.span.start, error.to_string(), ZONE_REMEDY);
    }
}

fn check_names<'a>(schedule: &'a Node, names: &mut HashSet<&'a str>, faults: &mut Faults) {
    let fields =
        [("name", "schedule"), ("kind", "kind"), ("dag", "DAG"), ("queue", "queue"), ("group", "group")];
    for (key, field) in fields {
        let Some(node) = schedule.get(key) else { continue };
        if let Some(Err(why)) = node.text().map(|name| kind::check_name(field, name)) {
            faults.add(node.span.start, why, "give it a name of 1 to 200 bytes without control characters");
        }
    }
    if let Some((node, name)) = schedule.get("name").and_then(|node| Some((node, node.text()?)))
        && !names.insert(name)
    {
        let what = format!("there is another schedule with the name {name}");
        faults.add(node.span.start, what, "rename one of the two");
    }
}

pub(super) fn check_spec(schedule: &Node, faults: &mut Faults) {
    let zone = schedule.get("zone");
    match (schedule.get("cron"), schedule.get("every")) {
        (None, None) => faults.add(
            schedule.span.start,
            "the schedule has neither cron nor every: it would never tick",
            "add cron = \"0 3 * * *\", or every = \"10m\"",
        ),
        (Some(cron), Some(every)) => faults.add(
            cron.span.start.max(every.span.start),
            "the schedule has both cron and every",
            "keep one of the two; create a second schedule for the other",
        ),
        (None, Some(every)) => {
            if let Some(zone) = zone {
                let remedy = "remove zone, or write cron instead of every";
                faults.add(zone.span.start, "an interval has no time zone", remedy);
            }
            let interval = every.text().and_then(|text| parsers::positive_duration(text).ok());
            if let Some(Err(error)) = interval.map(Spec::every) {
                faults.add(
                    every.span.start,
                    error.to_string(),
                    "write an interval such as \"30s\" or \"10m\"",
                );
            }
        }
        (Some(cron), None) => check_cron(cron, zone, faults),
    }
}

fn check_cron(cron: &Node, zone: Option<&Node>, faults: &mut Faults) {
    // A value that is not a string was reported already.
    let (Some(expression), Some(name)) = (cron.text(), zone.map_or(Some(ZONE_DEFAULT), Node::text)) else {
        return;
    };
    match Spec::cron(expression, name) {
        Ok(_) => {}
        Err(error @ InvalidSchedule::Zone { .. }) => {
            let at = zone.unwrap_or(cron).span.start;
            faults.add(at, error.to_string(), ZONE_REMEDY);
        }
        Err(error) => faults.add(
            cron.span.start,
            error.to_string(),
            "`milepost schedules preview` shows when an expression ticks",
        ),
    }
}
