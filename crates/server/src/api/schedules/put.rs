//! Storing and removing schedules.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::start::NewBatch;
use milepost_core::error::StoreError;
use milepost_core::job::{NewJob, Priority};
use milepost_core::port::Store;
use milepost_core::schedule::{InvalidSchedule, MISFIRE_MAX_DEFAULT, Makes, Misfire, Schedule, Source};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::list::ScheduleDetail;
use super::ticks::Asked;
use crate::actor::{RequestActor, Why};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(put_schedule, delete_schedule))
}

/// A schedule. It creates jobs (`kind`) or starts batches (`dag`), at the ticks of `cron` or `every`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleRequest {
    /// Its ticks as a cron expression of 5 fields, 6 with seconds first, or a macro such as `@daily`.
    #[schema(examples("0 3 * * *"))]
    cron: Option<String>,
    /// The interval between its ticks, in whole seconds, such as `10m`.
    #[schema(examples("10m"))]
    every: Option<String>,
    /// The time zone of `cron`, such as `Europe/Berlin`. The default is `UTC`.
    zone: Option<String>,
    /// The kind of the job that each tick creates.
    kind: Option<String>,
    /// The DAG of which each tick starts a batch, in its latest version.
    dag: Option<String>,
    /// With `dag`, the input of each batch. Its strings may contain expressions over the tick, such as `${ tick.date }`. The default is `{}`.
    #[schema(value_type = Option<serde_json::Value>)]
    input: Option<Box<RawValue>>,
    /// The payload of each job. The default is `null`.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// The queue of the jobs. The default is `default`.
    queue: Option<String>,
    /// The priority of the jobs within the queue: from 1 (first) to 4 (last). The default is 2.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// Maximum number of attempts of each job. The default is 25.
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_attempts: Option<u32>,
    /// The group of the jobs.
    group: Option<String>,
    /// Time limit of an attempt, in milliseconds.
    #[schema(minimum = 1)]
    timeout_ms: Option<u64>,
    /// How missed ticks are handled. The default is `once`.
    misfire: Option<MisfirePolicy>,
    /// With `all`, the maximum number of missed ticks that get a job or a batch: the latest ones. The default is 100.
    #[schema(minimum = 1, maximum = 1000)]
    misfire_max: Option<u32>,
    /// How late a tick may be without counting as missed, in milliseconds. The default is a minute.
    misfire_grace_ms: Option<u64>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// How missed ticks are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum MisfirePolicy {
    /// Drops them.
    Skip,
    /// Creates one job or batch for all of them.
    Once,
    /// Creates one job or batch for each of them.
    All,
}

fn refused(at: &str, words: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidSchedule, words).at(at)
}

impl ScheduleRequest {
    fn schedule(self, name: String) -> Result<Schedule, Problem> {
        let (cron, every, zone) = (self.cron.as_deref(), self.every.as_deref(), self.zone.as_deref());
        let spec = Asked { cron, every, zone, part: "" }.spec()?;
        let (misfire, grace_ms) = (self.misfire()?, self.misfire_grace_ms);
        let mut schedule = Schedule::new(name, spec, self.makes()?).misfire(misfire);
        if let Some(grace_ms) = grace_ms {
            schedule = schedule.misfire_grace(Duration::from_millis(grace_ms));
        }
        schedule.check().map_err(|invalid| match &invalid {
            InvalidSchedule::Name { .. } => refused("path name", invalid.to_string()),
            InvalidSchedule::MisfireMax { .. } => refused("misfire_max", invalid.to_string()),
            _ => Problem::new(Code::InvalidSchedule, invalid.to_string()),
        })?;
        Ok(schedule)
    }

    fn misfire(&self) -> Result<Misfire, Problem> {
        if self.misfire_max.is_some() && self.misfire != Some(MisfirePolicy::All) {
            return Err(refused(
                "misfire_max",
                "misfire_max needs misfire \"all\"; omit it, or set misfire to \"all\"",
            ));
        }
        Ok(match self.misfire {
            None => Misfire::default(),
            Some(MisfirePolicy::Skip) => Misfire::Skip,
            Some(MisfirePolicy::Once) => Misfire::Once,
            Some(MisfirePolicy::All) => Misfire::All { max: self.misfire_max.unwrap_or(MISFIRE_MAX_DEFAULT) },
        })
    }

    fn makes(self) -> Result<Makes, Problem> {
        match (self.kind.is_some(), self.dag.is_some()) {
            (true, false) => self.job(),
            (false, true) => self.batch(),
            (false, false) => Err(refused("kind", "the schedule needs kind or dag; give one of the two")),
            (true, true) => Err(refused("dag", "kind and dag exclude each other; give one of them")),
        }
    }

    fn job(self) -> Result<Makes, Problem> {
        if self.input.is_some() {
            return Err(refused(
                "input",
                "input applies to batches, but the schedule creates jobs; give payload instead",
            ));
        }
        let job = NewJob::new(self.kind.unwrap_or_default(), &self.payload)
            .map_err(|invalid| Problem::new(Code::InvalidSchedule, invalid.to_string()))?;
        Ok(Makes::from(NewJob {
            queue: self.queue.unwrap_or(job.queue),
            priority: self.priority.unwrap_or(job.priority),
            max_attempts: self.max_attempts.unwrap_or(job.max_attempts),
            group: self.group,
            timeout: self.timeout_ms.map(Duration::from_millis),
            ..job
        }))
    }

    fn batch(self) -> Result<Makes, Problem> {
        let of_jobs = [
            ("payload", self.payload.is_some()),
            ("queue", self.queue.is_some()),
            ("priority", self.priority.is_some()),
            ("max_attempts", self.max_attempts.is_some()),
            ("group", self.group.is_some()),
            ("timeout_ms", self.timeout_ms.is_some()),
        ];
        if let Some((field, _)) = of_jobs.into_iter().find(|(_, given)| *given) {
            let words = format!("{field} applies to jobs, but the schedule starts batches; omit it");
            return Err(refused(field, words));
        }
        let mut batch = NewBatch::new(self.dag.unwrap_or_default(), &serde_json::Map::new())
            .map_err(|invalid| Problem::new(Code::InvalidSchedule, invalid.to_string()))?;
        batch.input = self.input.unwrap_or(batch.input);
        Ok(batch.into())
    }
}

/// Store a schedule
///
/// Replaces the schedule; omitted fields get their defaults. The schedule is then an operator's, and no configuration changes it. If its
/// ticks are unchanged, due ticks are kept. A paused schedule remains paused.
#[utoipa::path(
    put, path = "/v1/schedules/{name}", tag = "schedules", params(("name" = String, Path, description = "The schedule")),
    request_body = ScheduleRequest, responses((status = 200, body = ScheduleDetail)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn put_schedule(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ScheduleRequest>,
) -> Result<Json<ScheduleDetail>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let schedule = request.schedule(name)?;
    check_input(&app, store.as_ref(), &schedule).await?;
    store.put_schedule(&schedule, Source::Operator).await?;
    ScheduleDetail::read_stored(schedule, app.store.as_ref()).await.map(Json)
}

/// Checks that the input of a schedule's batches fits their DAG. Returns what is missing if the DAG is not defined.
pub(crate) async fn check_input(
    app: &App,
    store: &dyn Store,
    schedule: &Schedule,
) -> Result<Option<InvalidBatch>, Problem> {
    // The definition of a DAG can be large, and its check can take a second.
    let permit = app.large.permit().await;
    let input = store.input_of_ticks(schedule).await?;
    let checked = tokio::task::spawn_blocking(move || input.check()).await;
    drop(permit);
    checked
        .map_err(|error| Problem::new(Code::CheckFailed, error.to_string()))?
        .map_err(|invalid| Problem::from(StoreError::from(invalid)).at("input"))
}

/// Remove a schedule
///
/// Its jobs and batches are kept. Schedules of a configuration are refused, because it would create them again: pause or replace them.
#[utoipa::path(
    delete, path = "/v1/schedules/{name}", tag = "schedules",
    params(("name" = String, Path, description = "The schedule"), Why),
    responses((status = 204)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn delete_schedule(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Query(why): Query<Why>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    remove_by_operator(store.as_ref(), &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a schedule, unless it comes from a configuration, which would create it again.
pub(crate) async fn remove_by_operator(store: &dyn Store, name: &str) -> Result<(), Problem> {
    if store.schedule(name).await?.is_some_and(|view| view.source == Source::Config) {
        let words = format!(
            "the schedule {name:?} comes from a configuration, which would create it again; remove it there, pause it, or replace it"
        );
        return Err(Problem::new(Code::OfConfiguration, words));
    }
    if !store.remove_schedule(name, Source::Operator).await? {
        return Err(StoreError::NoSuchSchedule(name.to_owned()).into());
    }
    Ok(())
}
