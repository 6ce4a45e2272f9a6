//! Claims: jobs for a worker, waited for if there are none.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::ident::{BatchId, JobId, WorkerId};
use milepost_core::port::Store;
use milepost_core::trace::Traceparent;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::handle::Handle;
use super::lease::check_served;
use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

/// How many jobs a claim takes at most.
const JOBS_MAX: u32 = 500;
/// How long a claim waits at most.
const WAIT_MS_MAX: u64 = 30_000;
/// How often it looks without a hint that something is ready.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(claim_jobs)).routes(routes!(list_held_jobs))
}

/// What a worker asks for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    /// Of these queues.
    #[schema(min_items = 1, max_items = 1000)]
    queues: Vec<String>,
    /// Of these kinds.
    #[schema(min_items = 1, max_items = 1000)]
    kinds: Vec<String>,
    /// How many at most. The default is 1.
    #[schema(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// How long to wait when there are none, in milliseconds. The default is not to wait.
    #[schema(maximum = 30_000)]
    wait_ms: Option<u64>,
    /// A number that rises with each claim of the worker, by which it knows a claim whose answer was lost. The default is 1.
    #[schema(minimum = 1)]
    claim_id: Option<i32>,
}

/// A job that the worker holds now.
#[derive(Debug, Serialize, ToSchema)]
struct HeldJob {
    /// Its id.
    id: JobId,
    /// Names this run, to be given back as it is.
    #[schema(value_type = String)]
    run: Handle,
    /// The claim that took it.
    claim_id: i32,
    /// What is to be done.
    kind: String,
    /// Where it waited.
    queue: String,
    /// Its input.
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    /// Where an earlier attempt says to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<Box<RawValue>>,
    /// Which try this is, from 1.
    attempt: u32,
    /// The last one.
    max_attempts: u32,
    /// How long the attempt may take, if the job says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The batch whose task it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchId>,
    /// When it was created.
    created_at: Timestamp,
    /// The tick of a schedule that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    nominal_at: Option<Timestamp>,
    /// The span of a trace that it follows from, as W3C Trace Context writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    traceparent: Option<Traceparent>,
}

/// Jobs that the worker holds.
#[derive(Debug, Serialize, ToSchema)]
struct HeldJobs {
    /// They.
    jobs: Vec<HeldJob>,
}

/// Claim jobs
///
/// Waits for some if there are none. After a lost answer, ask which jobs are held: those of that `claim_id` are the worker's as well.
#[utoipa::path(
    post, path = "/v1/workers/{id}/claim", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = ClaimRequest, responses((status = 200, body = HeldJobs)), security(("token" = ["worker"]))
)]
async fn claim_jobs(
    State(app): State<App>,
    Path(worker): Path<WorkerId>,
    Body(request): Body<ClaimRequest>,
) -> Result<Json<HeldJobs>, Problem> {
    let wait = Duration::from_millis(request.wait_ms.unwrap_or_default().min(WAIT_MS_MAX));
    let claim = claim(worker, request)?;
    let claimed = wait_for_some(&app, &claim, wait).await?;
    app.tally.claimed(&claimed);
    held(app.store.as_ref(), claimed).await
}

fn claim(worker: WorkerId, request: ClaimRequest) -> Result<Claim, Problem> {
    check_served(&request.queues, &request.kinds)?;
    let limit = request.limit.unwrap_or(1);
    if !(1..=JOBS_MAX).contains(&limit) {
        let words = format!("a claim takes from 1 to {JOBS_MAX} jobs, not {limit}");
        return Err(Problem::unprocessable("invalid_claim", words).at("limit"));
    }
    let claim_id = request.claim_id.unwrap_or(1);
    Ok(Claim { worker, claim_id, queues: request.queues, kinds: request.kinds, limit, thorough: false })
}

/// Claims, and again at every hint, until there are some or the time is over.
async fn wait_for_some(app: &App, claim: &Claim, wait: Duration) -> Result<Vec<ClaimedJob>, Problem> {
    let until = Instant::now() + wait;
    if wait.is_zero() {
        return Ok(app.store.claim(claim).await?);
    }
    // Before the first look: what becomes ready after it is hinted at.
    let mut wakes = app.store.wakes().await?;
    loop {
        let claimed = app.store.claim(claim).await?;
        if !claimed.is_empty() || Instant::now() >= until {
            return Ok(claimed);
        }
        tokio::select! {
            _ = wakes.next() => {}
            () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)) => {}
            () = app.stop.cancelled() => return Ok(Vec::new()),
        }
    }
}

/// List the jobs that a worker holds
///
/// What the store says, whatever the worker remembers.
#[utoipa::path(
    get, path = "/v1/workers/{id}/jobs", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 200, body = HeldJobs)), security(("token" = ["worker"]))
)]
async fn list_held_jobs(
    State(app): State<App>,
    Path(worker): Path<WorkerId>,
) -> Result<Json<HeldJobs>, Problem> {
    let claimed = app.store.held(worker).await?;
    held(app.store.as_ref(), claimed).await
}

async fn held(store: &dyn Store, claimed: Vec<ClaimedJob>) -> Result<Json<HeldJobs>, Problem> {
    // Only an earlier run can have left one.
    let again: Vec<JobId> = claimed.iter().filter(|job| job.run.token.0 > 1).map(|job| job.run.job).collect();
    let mut checkpoints = if again.is_empty() { HashMap::new() } else { store.checkpoints(&again).await? };
    let jobs = claimed.into_iter().map(|job| {
        let checkpoint = checkpoints.remove(&job.run.job);
        held_job(job, checkpoint)
    });
    Ok(Json(HeldJobs { jobs: jobs.collect::<Result<_, _>>()? }))
}

fn held_job(job: ClaimedJob, checkpoint: Option<String>) -> Result<HeldJob, Problem> {
    let json = |text: String| {
        RawValue::from_string(text).map_err(|error| {
            tracing::error!(%error, "the store holds what is no JSON");
            Problem::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "store_failed",
                "the store holds what is no JSON",
            )
        })
    };
    Ok(HeldJob {
        id: job.run.job,
        run: Handle::from(&job),
        claim_id: job.claim_id,
        payload: json(job.payload)?,
        checkpoint: checkpoint.map(json).transpose()?,
        kind: job.kind,
        queue: job.queue,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        timeout_ms: job.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        group: job.group,
        batch: job.batch,
        created_at: job.created_at,
        nominal_at: job.nominal_at,
        traceparent: job.traceparent,
    })
}
