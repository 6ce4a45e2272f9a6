//! A worker's life: it registers, sends heartbeats, and leaves.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, RunToken, WorkerId};
use milepost_core::job::check_queue;
use milepost_core::retry::RetryPolicy;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

/// How many queues, and how many kinds, a worker serves at most.
const NAMES_MAX: usize = 1_000;
/// How many pairs of them: a claim looks for each, in each priority.
const PAIRS_MAX: usize = 2_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register_worker))
        .routes(routes!(heartbeat_worker))
        .routes(routes!(retire_worker))
}

/// A worker that wants to register.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegisterRequest {
    /// For people: host name and process id, say.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// The queues it serves.
    #[schema(min_items = 1, max_items = 1000)]
    queues: Vec<String>,
    /// The kinds it can run.
    #[schema(min_items = 1, max_items = 1000)]
    kinds: Vec<String>,
    /// How long it may go without a heartbeat before its jobs are taken back, in milliseconds. The default is 15 seconds.
    #[schema(minimum = 1000, maximum = 3_600_000)]
    lease_ms: Option<u64>,
}

/// A worker that is registered.
#[derive(Debug, Serialize, ToSchema)]
struct Registered {
    /// Its id, for this run of its process.
    id: WorkerId,
    /// How long it may go without a heartbeat; a third of that is a good pace.
    lease_ms: u64,
}

/// Register a worker
///
/// Once for every run of a process, and again after `worker_lost`.
#[utoipa::path(
    post, path = "/v1/workers", tag = "worker protocol", request_body = RegisterRequest,
    responses((status = 201, body = Registered)), security(("token" = ["worker"]))
)]
async fn register_worker(
    State(app): State<App>,
    Body(request): Body<RegisterRequest>,
) -> Result<(StatusCode, Json<Registered>), Problem> {
    check_served(&request.queues, &request.kinds)?;
    check_name("name", &request.name)?;
    let lease_ms = match request.lease_ms.unwrap_or(15_000) {
        lease_ms @ 1_000..=3_600_000 => lease_ms,
        lease_ms => {
            let words = format!("a lease has from 1000 to 3600000 ms, not {lease_ms}");
            return Err(Problem::unprocessable("invalid_worker", words).at("lease_ms"));
        }
    };
    let lease = Duration::from_millis(lease_ms);
    // As their failures are told: see `finish`.
    let backoffs = request.kinds.iter().map(|kind| (kind.clone(), RetryPolicy::default())).collect();
    let worker =
        NewWorker { name: request.name, queues: request.queues, kinds: request.kinds, lease, backoffs };
    let id = app.store.register_worker(&worker).await?;
    Ok((StatusCode::CREATED, Json(Registered { id, lease_ms })))
}

/// Refuses names that nothing can have, and more of them than a claim can look for.
pub(super) fn check_served(queues: &[String], kinds: &[String]) -> Result<(), Problem> {
    check_names("queues", queues)?;
    check_names("kinds", kinds)?;
    let pairs = queues.len() * kinds.len();
    if pairs > PAIRS_MAX {
        let words = format!(
            "{} queues times {} kinds are {pairs}; a worker serves {PAIRS_MAX} at most: let several share them",
            queues.len(),
            kinds.len()
        );
        return Err(Problem::unprocessable("invalid_worker", words).at("queues"));
    }
    Ok(())
}

fn check_names(field: &str, names: &[String]) -> Result<(), Problem> {
    if names.is_empty() || names.len() > NAMES_MAX {
        let words = format!("there must be 1 to {NAMES_MAX} {field}, not {}", names.len());
        return Err(Problem::unprocessable("invalid_worker", words).at(field));
    }
    names.iter().enumerate().try_for_each(|(index, name)| check_name(&format!("{field}[{index}]"), name))
}

fn check_name(at: &str, name: &str) -> Result<(), Problem> {
    // Kinds, queues and workers are named alike.
    check_queue(name).map_err(|invalid| {
        Problem::unprocessable("invalid_worker", invalid.to_string().replacen("the queue", "the name", 1))
            .at(at)
    })
}

/// What a worker is told with its heartbeat.
#[derive(Debug, Serialize, ToSchema)]
struct HeartbeatAnswer {
    /// Runs that it is asked to stop.
    stops: Vec<Stop>,
}

/// A run that somebody asked to stop.
#[derive(Debug, Serialize, ToSchema)]
struct Stop {
    /// The job.
    job: JobId,
    /// The token of the run.
    token: RunToken,
    /// `cancel` or `abort`: how the run then ends.
    verb: Verb,
}

/// Send a heartbeat
///
/// Renews the lease and answers which runs to stop. 409 `worker_lost` when the lease had run out: its jobs are taken back, and it
/// registers anew.
#[utoipa::path(
    post, path = "/v1/workers/{id}/heartbeat", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 200, body = HeartbeatAnswer)), security(("token" = ["worker"]))
)]
async fn heartbeat_worker(
    State(app): State<App>,
    Path(id): Path<WorkerId>,
) -> Result<Json<HeartbeatAnswer>, Problem> {
    let heartbeat = app.store.heartbeat(id).await.inspect_err(|error| {
        if matches!(error, StoreError::WorkerLost(_)) {
            app.tally.lease_lost();
        }
    })?;
    let stops = heartbeat
        .stops
        .into_iter()
        .map(|(run, verb)| Stop { job: run.job, token: run.token, verb })
        .collect();
    Ok(Json(HeartbeatAnswer { stops }))
}

/// Retire a worker
///
/// Once it holds nothing any more.
#[utoipa::path(
    delete, path = "/v1/workers/{id}", tag = "worker protocol", params(("id" = WorkerId, Path, description = "The worker")),
    responses((status = 204)), security(("token" = ["worker"]))
)]
async fn retire_worker(State(app): State<App>, Path(id): Path<WorkerId>) -> Result<StatusCode, Problem> {
    app.store.retire_worker(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
