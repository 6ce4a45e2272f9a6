//! Starting runs of bulk jobs.

use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::staged::Columns;
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority};
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::definitions::definition;
use crate::actor::RequestActor;
use crate::api::create;
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::{self, IdempotencyKey};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(start_bulk_run))
}

/// A run to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunRequest {
    /// The name of the bulk job.
    name: String,
    /// The named parameters of its SQL: a JSON object.
    #[serde(default)]
    #[schema(value_type = Object, examples(json!({"place": 4711})))]
    parameters: Parameters,
    /// A unique key among the runs of the bulk job. A repeated request with the same key returns the same run.
    #[schema(min_length = 1, max_length = 1000)]
    key: Option<String>,
    /// The priority within the group: from 1 (first) to 4 (last). The default is that of the definition.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// Delay before the start, in milliseconds from now. Cannot be combined with `start_at`.
    delay_ms: Option<u64>,
    /// The earliest start time.
    start_at: Option<Timestamp>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The run of a request.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(super) struct StartedRun {
    /// Its id, which is the id of its job.
    id: JobId,
    /// Whether it already existed under this key. In that case nothing was changed.
    duplicate: bool,
}

impl From<Enqueued> for StartedRun {
    fn from(enqueued: Enqueued) -> Self {
        Self { id: enqueued.job, duplicate: enqueued.duplicate }
    }
}

impl IntoResponse for StartedRun {
    fn into_response(self) -> Response {
        idempotency::made(self.duplicate, format!("/v1/bulk-runs/{}", self.id), self)
    }
}

/// Start a run of a bulk job
///
/// One run of a group is in progress at a time; the others wait for it. With a `key`, or with the header `Idempotency-Key` instead, the
/// request can be repeated safely.
#[utoipa::path(
    post, path = "/v1/bulk-runs", tag = "bulk jobs", params(IdempotencyKey), request_body = RunRequest,
    responses((status = 201, body = StartedRun), (status = 200, description = "It already existed under this key", body = StartedRun)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn start_bulk_run(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<RunRequest>,
) -> Result<StartedRun, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let mut job = new_run(&request.name, &request.parameters, app.store.as_ref()).await?;
    job.key = request.key;
    job.start = create::start(request.delay_ms, request.start_at)?;
    job.priority = request.priority.unwrap_or(job.priority);
    let keyed = idempotency.give(&mut job.key, 0);
    job.check(PAYLOAD_BYTES_MAX).map_err(create::invalid_run)?;
    let started = store.start_bulk(&job).await?;
    if keyed && started.duplicate {
        idempotency::check_held(app.store.as_ref(), &job).await?;
    }
    Ok(started.into())
}

/// Returns a run of a bulk job with these parameters, with the options of its definition.
pub(crate) async fn new_run(
    name: &str,
    parameters: &Parameters,
    store: &dyn Store,
) -> Result<NewJob, Problem> {
    let definition = definition(name, store).await.map_err(|it| it.at("name"))?;
    if definition.columns.is_some() {
        let words =
            "its targets come from a file; start it with a file, or with `milepost bulk start --from FILE`";
        return Err(Problem::new(Code::InvalidBulk, words).at("name"));
    }
    directed(&definition, parameters)
}

/// As [`new_run`], for a bulk job whose targets come from a file; also returns the columns of the file.
pub(crate) async fn new_run_over_file(
    name: &str,
    parameters: &Parameters,
    store: &dyn Store,
) -> Result<(NewJob, Columns), Problem> {
    let definition = definition(name, store).await.map_err(|it| it.at("name"))?;
    let Some(columns) = definition.columns.clone() else {
        let words = "its targets come from tables, by the SQL of its source: start it without a file";
        return Err(Problem::new(Code::InvalidBulk, words).at("name"));
    };
    Ok((directed(&definition, parameters)?, columns))
}

fn directed(definition: &Definition, parameters: &Parameters) -> Result<NewJob, Problem> {
    definition
        .check_parameters(parameters)
        .map_err(|missing| Problem::new(Code::InvalidBulk, missing.to_string()).at("parameters"))?;
    Ok(definition.direct(NewJob::new(&definition.name, parameters).map_err(create::invalid_run)?))
}
