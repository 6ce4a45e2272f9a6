//! `schedule` of a bulk job.

use anyhow::Result;
use milepost::bulk::Definition;
use milepost_core::json::plain_members;
use milepost_core::schedule::Schedule;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::super::humane::Humane;
use super::super::schedule::ScheduleEntry;

/// When a bulk job starts automatically, by exactly one of `cron` and `every`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkSchedule {
    /// The times of its ticks: 5 cron fields, 6 with seconds first, or a macro such as `@daily`.
    #[serde(default)]
    cron: Option<String>,
    /// The interval of its ticks, in whole seconds.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    every: Option<Humane>,
    /// The time zone of `cron`, such as `Europe/Berlin`. The default is `UTC`.
    #[serde(default)]
    zone: Option<String>,
    /// The parameters of each run. The default is none.
    #[serde(default, deserialize_with = "plain_members")]
    payload: Map<String, Json>,
    /// The handling of missed ticks: `skip`, `once` (one run for all) or `all`. The default is `once`.
    #[serde(default)]
    #[schemars(extend("enum" = ["skip", "once", "all"]))]
    misfire: Option<String>,
    /// With `all`, the maximum number of missed ticks that get a run, the newest ones. The default is 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    misfire_max: Option<u32>,
    /// A tick that is late by at most this time is not missed. The default is `60s`.
    #[serde(default)]
    misfire_grace: Option<Humane>,
}

impl BulkSchedule {
    /// Returns the schedule of a checked file: each tick starts a run of the definition.
    pub(super) fn schedule(&self, definition: &Definition) -> Result<Schedule> {
        let its = self.clone();
        let entry = ScheduleEntry {
            name: definition.name.clone(),
            cron: its.cron,
            every: its.every,
            zone: its.zone,
            kind: Some(definition.name.clone()),
            dag: None,
            input: None,
            payload: Json::Object(its.payload),
            queue: Some(definition.queue.clone()),
            priority: Some(definition.priority.get()),
            max_attempts: Some(definition.max_attempts),
            group: Some(definition.group.clone()),
            timeout: None,
            misfire: its.misfire,
            misfire_max: its.misfire_max,
            misfire_grace: its.misfire_grace,
        };
        entry.schedule()
    }
}
