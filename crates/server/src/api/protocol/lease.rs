//! Worker leases: registration, heartbeats and deregistration.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, RunToken, WorkerId};
use milepost_core::job::check_queue;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::backoff::{self, Backoff};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

/// Maximum number of queues, and of kinds, of a worker.
const NAMES_MAX: usize = 1_000;
/// Maximum size of all names of a worker, in bytes: lists of workers contain them.
const NAMES_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of (queue, kind) pairs: a claim probes each pair at each priority.
const PAIRS_MAX: usize = 2_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(register_worker))
        .routes(routes!(heartbeat_worker))
        .routes(routes!(retire_worker))
}

/// A worker to register.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegisterRequest {
    /// A name for operators, such as host name and process id.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The queues it serves.
    #[schema(min_items = 1, max_items = 1000)]
    queues: Vec<String>,
    /// The kinds it can run.
    #[schema(min_items = 1, max_items = 1000)]
    kinds: Vec<String>,
    /// The duration of its lease, in milliseconds: after this time without a heartbeat its jobs are taken back. The default is 15 seconds.
    #[schema(minimum = 1000, maximum = 3_600_000)]
    lease_ms: Option<u64>,
    /// How long jobs of these kinds wait if this worker is lost while it runs them; the default for the others. Send the same `backoff` with
    /// the end of a failed run.
    #[serde(default)]
    backoffs: BTreeMap<String, Backoff>,
    /// The maximum number of jobs that it runs at the same time, for operators.
    #[schema(value_type = Option<u32>, minimum = 1)]
    slots: Option<NonZeroU32>,
}

/// A registered worker.
#[derive(Debug, Serialize, ToSchema)]
struct Registered {
    /// The id of this incarnation.
    id: WorkerId,
    /// The duration of its lease. Send a heartbeat after every third of it.
    lease_ms: u64,
}

/// Register a worker
///
/// Register once per process, and again after `worker_lost`.
#[utoipa::path(
    post, path = "/v1/workers", tag = "worker protocol", request_body = RegisterRequest,
    responses((status = 201, body = Registered)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn register_worker(
    app: App,
    Body(request): Body<RegisterRequest>,
) -> Result<(StatusCode, Json<Registered>), Problem> {
    check_served(&request.queues, &request.kinds)?;
    check_name("name", &request.name)?;
    let lease_ms = match request.lease_ms.unwrap_or(15_000) {
        lease_ms @ 1_000..=3_600_000 => lease_ms,
        lease_ms => {
            let words = format!("a lease must have 1000 to 3600000 ms, not {lease_ms}");
            return Err(Problem::new(Code::InvalidWorker, words).at("lease_ms"));
        }
    };
    let lease = Duration::from_millis(lease_ms);
    let backoffs = backoff::of_kinds(&request.kinds, &request.backoffs)?;
    let worker = NewWorker {
        name: request.name,
        queues: request.queues,
        kinds: request.kinds,
        lease,
        backoffs,
        slots: request.slots,
    };
    let names = worker.queues.len() + worker.kinds.len();
    app.registrations.check(names)?;
    let id = app.store.register_worker(&worker).await?;
    app.registrations.add(id, names, lease);
    Ok((StatusCode::CREATED, Json(Registered { id, lease_ms })))
}

/// Refuses invalid names, and more names than a claim can probe.
pub(super) fn check_served(queues: &[String], kinds: &[String]) -> Result<(), Problem> {
    check_names("queues", queues)?;
    check_names("kinds", kinds)?;
    let bytes: usize = queues.iter().chain(kinds).map(String::len).sum();
    if bytes > NAMES_BYTES_MAX {
        let words = format!(
            "the names of queues and kinds have {bytes} bytes; a worker can serve at most {NAMES_BYTES_MAX}: distribute them among several workers"
        );
        return Err(Problem::new(Code::InvalidWorker, words).at("queues"));
    }
    let pairs = queues.len() * kinds.len();
    if pairs > PAIRS_MAX {
        let words = format!(
            "{} queues times {} kinds are {pairs} pairs; a worker can serve at most {PAIRS_MAX}: distribute them among several workers",
            queues.len(),
            kinds.len()
        );
        return Err(Problem::new(Code::InvalidWorker, words).at("queues"));
    }
    Ok(())
}

fn check_names(field: &str, names: &[String]) -> Result<(), Problem> {
    if names.is_empty() || names.len() > NAMES_MAX {
        let words = format!("there must be 1 to {NAMES_MAX} {field}, not {}", names.len());
        return Err(Problem::new(Code::InvalidWorker, words).at(field));
    }
    names.iter().enumerate().try_for_each(|(index, name)| check_name(&format!("{field}[{index}]"), name))
}

fn check_name(at: &str, name: &str) -> Result<(), Problem> {
    // The same rules apply to names of kinds, queues and workers.
    check_queue(name).map_err(|invalid| {
        Problem::new(Code::InvalidWorker, invalid.to_string().replacen("the queue", "the name", 1)).at(at)
    })
}

/// The response to a heartbeat.
#[derive(Debug, Serialize, ToSchema)]
struct HeartbeatAnswer {
    /// Runs that the worker must stop.
    stops: Vec<Stop>,
}

/// A run with a request to stop it.
#[derive(Debug, Serialize, ToSchema)]
struct Stop {
    /// The job.
    job: JobId,
    /// The run token.
    token: RunToken,
    /// `cancel` or `abort`: the outcome to report.
    verb: Verb,
}

/// Send a heartbeat
///
/// Renews the lease and returns the runs to stop. 409 `worker_lost` when the lease had expired: its jobs are taken back, and it must
/// register again.
#[utoipa::path(
    post, path = "/v1/workers/{id}/heartbeat", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 200, body = HeartbeatAnswer)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn heartbeat_worker(app: App, Path(id): Path<WorkerId>) -> Result<Json<HeartbeatAnswer>, Problem> {
    let heartbeat = app.store.heartbeat(id).await.inspect_err(|error| {
        if matches!(error, StoreError::WorkerLost(_)) {
            app.tally.lease_lost();
            app.registrations.remove(id);
        }
    })?;
    app.registrations.renew(id);
    let stops = heartbeat
        .stops
        .into_iter()
        .map(|(run, verb)| Stop { job: run.job, token: run.token, verb })
        .collect();
    Ok(Json(HeartbeatAnswer { stops }))
}

/// Unregister a worker
///
/// Only when it no longer holds jobs.
#[utoipa::path(
    delete, path = "/v1/workers/{id}", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 204)), security(("token" = ["worker"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn retire_worker(app: App, Path(id): Path<WorkerId>) -> Result<StatusCode, Problem> {
    app.store.retire_worker(id).await?;
    app.registrations.remove(id);
    Ok(StatusCode::NO_CONTENT)
}
