//! Creating jobs: one, or many in one request.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::duplicate::{EnqueueOutcome, OnDuplicate};
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page;
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::{self, Body};
use crate::idempotency::{self, IdempotencyKey};
use crate::intake::store_each_in_time;
use crate::params::Query;
use crate::problem::{Code, Problem};

/// Maximum number of jobs in one request.
pub(crate) const JOBS_MAX: usize = 5_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create_job)).routes(routes!(create_jobs))
}

/// A job to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRequest {
    /// Its kind, which determines the handler.
    #[schema(min_length = 1, max_length = 200, examples("mail"))]
    kind: String,
    /// Its input: any JSON.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Its queue. The default is `default`.
    #[schema(min_length = 1, max_length = 200)]
    queue: Option<String>,
    /// A unique key among the jobs of its kind. A repeated request with the same key returns the same job.
    #[schema(min_length = 1, max_length = 1000)]
    key: Option<String>,
    /// What happens when a job holds the key, and how long it holds it. By default, the existing job is kept.
    on_duplicate: Option<OnDuplicate>,
    /// Its group. Jobs of a group run one at a time, unless a limit allows more.
    #[schema(min_length = 1, max_length = 200)]
    group: Option<String>,
    /// Its priority within the queue: from 1 (first) to 4 (last). The default is 2.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// Maximum number of attempts. The default is 25.
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_attempts: Option<u32>,
    /// Time limit of an attempt, in milliseconds. The default is that of the handler.
    #[schema(minimum = 1)]
    timeout_ms: Option<u64>,
    /// Delay before the start, in milliseconds from now. Cannot be combined with `start_at`.
    delay_ms: Option<u64>,
    /// The earliest start time.
    start_at: Option<Timestamp>,
    /// The reason, for the audit log. A request for many jobs has one reason, beside `jobs`.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl JobRequest {
    /// Converts the request to a job.
    fn into_job(self) -> Result<NewJob, Problem> {
        let start = start(self.delay_ms, self.start_at)?;
        let mut job = NewJob::new(self.kind, &()).map_err(invalid)?;
        if let Some(payload) = self.payload {
            job.payload = payload;
        }
        if let Some(queue) = self.queue {
            job.queue = queue;
        }
        job.key = self.key;
        job.on_duplicate = self.on_duplicate;
        job.group = self.group;
        job.priority = self.priority.unwrap_or(job.priority);
        job.max_attempts = self.max_attempts.unwrap_or(job.max_attempts);
        job.timeout = self.timeout_ms.map(Duration::from_millis);
        job.start = start;
        job.check(PAYLOAD_BYTES_MAX).map_err(invalid)?;
        Ok(job)
    }

    /// Converts one of the jobs of a request.
    fn one_of_many(json: &RawValue) -> Result<NewJob, Problem> {
        let request: Self = body::read(json.get().as_bytes())?;
        if request.reason.is_some() {
            let words = "a request for many jobs has one reason; give it beside jobs";
            return Err(Problem::new(Code::InvalidJob, words));
        }
        request.into_job()
    }
}

/// Returns the start time of a job with this delay or start time.
pub(super) fn start(delay_ms: Option<u64>, start_at: Option<Timestamp>) -> Result<StartAt, Problem> {
    match (delay_ms, start_at) {
        (None, None) => Ok(StartAt::Now),
        (Some(delay_ms), None) => Ok(StartAt::After(Duration::from_millis(delay_ms))),
        (None, Some(at)) => Ok(StartAt::At(at)),
        (Some(_), Some(_)) => {
            let words = "delay_ms and start_at exclude each other; give one of them";
            Err(Problem::new(Code::InvalidJob, words).at("start_at"))
        }
    }
}

pub(super) fn invalid(invalid: InvalidJob) -> Problem {
    let problem = Problem::new(Code::InvalidJob, invalid.to_string());
    match invalid.field() {
        Some(field) => problem.at(field),
        None => problem,
    }
}

/// As [`invalid`], for a run of a bulk job, whose parameters are the payload.
pub(super) fn invalid_run(run: InvalidJob) -> Problem {
    let is_of_parameters = run.field() == Some("payload");
    let problem = invalid(run);
    if is_of_parameters { problem.at("parameters") } else { problem }
}

/// The job of a request.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct Created {
    /// Its id.
    id: JobId,
    /// Whether it already existed under this key.
    duplicate: bool,
    /// What the request did. Without `on_duplicate`: `created` or `kept`.
    outcome: EnqueueOutcome,
}

impl From<Enqueued> for Created {
    fn from(enqueued: Enqueued) -> Self {
        Self { id: enqueued.job, duplicate: enqueued.duplicate, outcome: enqueued.outcome }
    }
}

impl IntoResponse for Created {
    fn into_response(self) -> Response {
        idempotency::made(self.duplicate, format!("/v1/jobs/{}", self.id), self)
    }
}

/// Create a job
///
/// The response is sent when the job is durable. With a `key`, or with the header `Idempotency-Key` instead, the request can be repeated
/// safely.
#[utoipa::path(
    post, path = "/v1/jobs", tag = "jobs", params(IdempotencyKey), request_body = JobRequest,
    responses((status = 201, body = Created), (status = 200, description = "It already existed under this key", body = Created)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn create_job(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<JobRequest>,
) -> Result<Created, Problem> {
    let actor = actor.because(request.reason.as_deref())?;
    let mut job = request.into_job()?;
    let keyed = idempotency.give(&mut job.key, 0);
    let asked = keyed.then(|| job.clone());
    let created = app.intake.create(actor, job).await?;
    if let Some(asked) = asked.filter(|_| created.duplicate) {
        idempotency::check_held(app.store.as_ref(), &asked).await?;
    }
    Ok(created.into())
}

/// Jobs to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct JobsRequest {
    /// The jobs.
    #[schema(value_type = Vec<JobRequest>, min_items = 1, max_items = 5000)]
    jobs: Vec<Box<RawValue>>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Options for creating many jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CreateParams {
    /// `true`: each job separately; the result of a job that is refused contains the problem. By default, all jobs are created or none.
    #[serde(default)]
    each: bool,
}

/// The result for one of many jobs: `id`, `duplicate` and `outcome`, or a `problem`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum OneOfMany {
    /// The job was created, or already existed.
    Created(Created),
    /// The job was refused.
    Refused {
        /// The reason.
        problem: Problem,
    },
}

/// The results for many jobs, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedMany {
    /// One result for each job.
    jobs: Vec<OneOfMany>,
}

/// Create many jobs
///
/// All or none, in one transaction; with `each=true`, each job separately.
#[utoipa::path(
    post, path = "/v1/jobs/create-many", tag = "jobs", params(IdempotencyKey, CreateParams), request_body = JobsRequest,
    responses((status = 201, body = CreatedMany)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn create_jobs(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Query(params): Query<CreateParams>,
    Body(request): Body<JobsRequest>,
) -> Result<(StatusCode, Json<CreatedMany>), Problem> {
    page::check_count(request.jobs.len(), JOBS_MAX, "jobs")?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let (mut asked, mut repeatable) = (Vec::with_capacity(request.jobs.len()), Vec::new());
    for (index, json) in request.jobs.iter().enumerate() {
        let mut job =
            JobRequest::one_of_many(json).map_err(|problem| problem.within(&format!("jobs[{index}]")));
        if let Ok(job) = &mut job
            && idempotency.give(&mut job.key, index)
        {
            repeatable.push(index);
        }
        asked.push(job);
    }
    let store = store.as_ref();
    let jobs = if params.each {
        each(store, asked, &repeatable).await?
    } else {
        all(store, asked, &repeatable, &idempotency).await?
    };
    Ok((StatusCode::CREATED, Json(CreatedMany { jobs })))
}

/// Creates all jobs or none; those at `repeatable` have a key from the request's header.
async fn all(
    store: &dyn Store,
    asked: Vec<Result<NewJob, Problem>>,
    repeatable: &[usize],
    idempotency: &IdempotencyKey,
) -> Result<Vec<OneOfMany>, Problem> {
    let jobs: Vec<NewJob> = asked.into_iter().collect::<Result<_, _>>()?;
    check_keys(&jobs)?;
    let keyed: Vec<&NewJob> = repeatable.iter().map(|&index| &jobs[index]).collect();
    let known = idempotency::check_repeated(store, &keyed).await?;
    if known {
        idempotency::check_complete(store, &jobs, idempotency).await?;
    }
    let created = match store.enqueue_together(&jobs, repeatable).await {
        // Another request with the same key came in between.
        Err(StoreError::PartlyStored { .. }) => {
            idempotency::check_repeated(store, &keyed).await?;
            return Err(idempotency::in_between());
        }
        created => created?,
    };
    if !known && repeatable.iter().any(|&index| created[index].duplicate) {
        idempotency::check_repeated(store, &keyed).await?;
        idempotency::check_complete(store, &jobs, idempotency).await?;
    }
    Ok(created.into_iter().map(|created| OneOfMany::Created(created.into())).collect())
}

/// Refuses a key that two jobs of the request share: they cannot be created all or none.
fn check_keys(jobs: &[NewJob]) -> Result<(), Problem> {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let Some(key) = &job.key else { continue };
        if let Some(first) = seen.insert((&job.kind, key), index) {
            let words = format!("jobs[{first}] already has the key {key:?}; each job needs a different key");
            return Err(Problem::new(Code::KeyTwice, words).at(format!("jobs[{index}].key")));
        }
    }
    Ok(())
}

/// Creates the jobs that the store accepts and returns the reason for each refused one; those at `repeatable` have a key from the
/// request's header.
async fn each(
    store: &dyn Store,
    asked: Vec<Result<NewJob, Problem>>,
    repeatable: &[usize],
) -> Result<Vec<OneOfMany>, Problem> {
    let mut answers: Vec<Option<OneOfMany>> = Vec::with_capacity(asked.len());
    let (mut places, mut accepted) = (Vec::new(), Vec::new());
    for (place, job) in asked.into_iter().enumerate() {
        match job {
            Ok(job) => {
                places.push(place);
                accepted.push(job);
                answers.push(None);
            }
            Err(problem) => answers.push(Some(OneOfMany::Refused { problem })),
        }
    }
    let mut stored = store_each_in_time(store, &accepted).await?;
    let is_repeatable = |index: usize| repeatable.binary_search(&places[index]).is_ok();
    refuse_taken(store, &accepted, &mut stored, is_repeatable).await;
    for (place, stored) in places.into_iter().zip(stored) {
        answers[place] = Some(match stored {
            Ok(created) => OneOfMany::Created(created.into()),
            Err(problem) => OneOfMany::Refused { problem: problem.at(format!("jobs[{place}]")) },
        });
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Refuses jobs whose key from the request's header belongs to a different job, or cannot be checked; the other jobs keep their
/// results.
async fn refuse_taken(
    store: &dyn Store,
    asked: &[NewJob],
    stored: &mut [Result<Enqueued, Problem>],
    is_repeatable: impl Fn(usize) -> bool,
) {
    let was_there = |index: &usize| stored[*index].as_ref().is_ok_and(|made| made.duplicate);
    let again: Vec<usize> =
        (0..asked.len()).filter(was_there).filter(|&index| is_repeatable(index)).collect();
    let keyed: Vec<&NewJob> = again.iter().map(|&index| &asked[index]).collect();
    let checked = idempotency::check_each(store, &keyed).await;
    let checked = checked.unwrap_or_else(|unknown| vec![Err(unknown); again.len()]);
    for (index, same) in again.into_iter().zip(checked) {
        if let Err(problem) = same {
            stored[index] = Err(problem);
        }
    }
}
