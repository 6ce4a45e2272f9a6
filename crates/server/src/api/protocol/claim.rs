//! Claiming jobs for a worker, with long polling.

use std::collections::HashMap;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
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
use crate::access::{FRESH, Identity, OpenCredentials, Over};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

/// Maximum number of jobs in one claim.
const JOBS_MAX: u32 = 500;
/// A claim ends when the payloads of its jobs have this many bytes, so that a response needs little memory.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of jobs that are claimed before their payloads are counted.
const STEP_JOBS_MAX: u32 = 32;
/// Maximum wait of a claim, in milliseconds.
const WAIT_MS_MAX: u64 = 30_000;
/// Interval of claims without a hint that a job is ready.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(claim_jobs)).routes(routes!(list_held_jobs))
}

/// A claim.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClaimRequest {
    /// The queues to claim from.
    #[schema(min_items = 1, max_items = 1000)]
    queues: Vec<String>,
    /// The kinds to claim.
    #[schema(min_items = 1, max_items = 1000)]
    kinds: Vec<String>,
    /// Maximum number of jobs. The default is 1. A claim also ends when its payloads have 16 MiB.
    #[schema(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// How long to wait for a job if none is ready, in milliseconds. The default is 0.
    #[schema(maximum = 30_000)]
    wait_ms: Option<u64>,
    /// A number that increases with each claim of the worker and identifies a claim whose response was lost. The default is 1.
    #[schema(minimum = 1)]
    claim_id: Option<i32>,
}

/// A job that a worker holds.
#[derive(Debug, Serialize, ToSchema)]
struct HeldJob {
    /// Its id.
    id: JobId,
    /// An opaque identifier of this run, to be sent back unchanged.
    #[schema(value_type = String)]
    run: Handle,
    /// The run token, for `milepost.complete`, which ends the job in a transaction of the handler's own.
    run_token: i32,
    /// The claim that acquired it.
    claim_id: i32,
    /// Its kind.
    kind: String,
    /// Its queue.
    queue: String,
    /// Its payload.
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    /// The checkpoint of an earlier attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    checkpoint: Option<Box<RawValue>>,
    /// The number of this attempt, from 1.
    attempt: u32,
    /// Maximum number of attempts.
    max_attempts: u32,
    /// Time limit of the attempt, if the job has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The batch whose task it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchId>,
    /// The time of its creation.
    created_at: Timestamp,
    /// The schedule's tick that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nominal_at: Option<Timestamp>,
    /// The span that it follows from, in the format of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    traceparent: Option<Traceparent>,
}

/// Jobs that the worker holds.
#[derive(Debug, Serialize, ToSchema)]
struct HeldJobs {
    /// The jobs.
    jobs: Vec<HeldJob>,
}

/// Claim jobs
///
/// Waits for a job if none is ready. After a lost response, list the jobs that the worker holds: those with this `claim_id` belong to it,
/// too.
#[utoipa::path(
    post, path = "/v1/workers/{id}/claim", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    request_body = ClaimRequest, responses((status = 200, body = HeldJobs)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn claim_jobs(
    app: App,
    Extension(identity): Extension<Identity>,
    Path(worker): Path<WorkerId>,
    Body(request): Body<ClaimRequest>,
) -> Result<Response, Problem> {
    let wait = Duration::from_millis(request.wait_ms.unwrap_or_default().min(WAIT_MS_MAX));
    let claim = claim(worker, request)?;
    let claimed = wait_for_some(&app, &claim, wait, &identity).await?;
    app.tally.claimed(&claimed);
    held(app.store.as_ref(), claimed).await
}

fn claim(worker: WorkerId, request: ClaimRequest) -> Result<Claim, Problem> {
    check_served(&request.queues, &request.kinds)?;
    let limit = request.limit.unwrap_or(1);
    if !(1..=JOBS_MAX).contains(&limit) {
        let words = format!("a claim must be for 1 to {JOBS_MAX} jobs, not {limit}");
        return Err(Problem::new(Code::InvalidClaim, words).at("limit"));
    }
    let claim_id = request.claim_id.unwrap_or(1);
    Ok(Claim { worker, claim_id, queues: request.queues, kinds: request.kinds, limit, thorough: false })
}

/// Claims jobs, again after every hint, until there are some or the wait has elapsed. Ends when the credentials are no longer valid.
async fn wait_for_some(
    app: &App,
    claim: &Claim,
    wait: Duration,
    identity: &Identity,
) -> Result<Vec<ClaimedJob>, Problem> {
    let until = Instant::now() + wait;
    if wait.is_zero() {
        return Ok(claim_in_steps(app.store.as_ref(), claim).await?);
    }
    let mut credentials = OpenCredentials::of(app.clone(), identity);
    // Subscribe before the first claim: jobs that become ready after it cause a hint.
    let mut wakes = app.store.wakes().await?;
    let mut checked = Instant::now();
    loop {
        if checked.elapsed() >= FRESH {
            // An error of the store is that of the claim, too.
            if let Ok(Some(Over { reason, words })) = credentials.why_invalid().await {
                return Err(Problem::new(reason, words));
            }
            checked = Instant::now();
        }
        let claimed = claim_in_steps(app.store.as_ref(), claim).await?;
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

/// Claims up to the limit of jobs and of payload bytes.
async fn claim_in_steps(store: &dyn Store, claim: &Claim) -> Result<Vec<ClaimedJob>, StoreError> {
    let (mut claimed, mut bytes) = (Vec::new(), 0);
    while bytes < PAYLOAD_BYTES_MAX {
        let limit = (claim.limit - claimed.len() as u32).min(STEP_JOBS_MAX);
        let step = match store.claim(&Claim { limit, ..claim.clone() }).await {
            Ok(step) => step,
            Err(error) if claimed.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "a claim ends early; the worker gets what it has claimed");
                break;
            }
        };
        let is_last = step.len() < limit as usize;
        bytes += step.iter().map(|job| job.payload.len()).sum::<usize>();
        claimed.extend(step);
        if is_last || claimed.len() >= claim.limit as usize {
            break;
        }
    }
    Ok(claimed)
}

/// List the jobs that a worker holds
///
/// The jobs that the worker holds according to the store.
#[utoipa::path(
    get, path = "/v1/workers/{id}/jobs", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 200, body = HeldJobs)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_held_jobs(app: App, Path(worker): Path<WorkerId>) -> Result<Response, Problem> {
    let _permit = app.large.permit().await;
    let claimed = app.store.held(worker).await?;
    held(app.store.as_ref(), claimed).await
}

async fn held(store: &dyn Store, claimed: Vec<ClaimedJob>) -> Result<Response, Problem> {
    // Only an earlier run can have stored a checkpoint.
    let again: Vec<JobId> = claimed.iter().filter(|job| job.run.token.0 > 1).map(|job| job.run.job).collect();
    let mut checkpoints = if again.is_empty() { HashMap::new() } else { store.checkpoints(&again).await? };
    let jobs = claimed.into_iter().map(|job| {
        let checkpoint = checkpoints.remove(&job.run.job);
        held_job(job, checkpoint)
    });
    Ok(Json(HeldJobs { jobs: jobs.collect::<Result<_, _>>()? }).into_response())
}

fn held_job(job: ClaimedJob, checkpoint: Option<String>) -> Result<HeldJob, Problem> {
    let json = |text: String| {
        RawValue::from_string(text).map_err(|error| {
            tracing::error!(%error, "the store contains a value that is not JSON");
            Problem::new(Code::StoreFailed, "the store contains a value that is not JSON")
        })
    };
    Ok(HeldJob {
        id: job.run.job,
        run: Handle::from(&job),
        run_token: job.run.token.0,
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
