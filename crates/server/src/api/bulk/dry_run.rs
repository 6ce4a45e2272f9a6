//! Dry runs: jobs that apply a few chunks and roll them back.

use milepost_core::bulk::chunk::FIRST_ROWS;
use milepost_core::bulk::dry_run::{CHUNKS_DEFAULT, DryRun};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::Store;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::definitions::definition;
use crate::actor::RequestActor;
use crate::api::create::{self, Created};
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::{self, IdempotencyKey};
use crate::problem::{Code, Problem};
use crate::target_file::TargetFile;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(start_dry_run))
}

/// A dry run to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DryRunRequest {
    /// The name of the bulk job.
    name: String,
    /// The named parameters of its SQL: a JSON object.
    #[serde(default)]
    #[schema(value_type = Object, examples(json!({"place": 4711})))]
    parameters: Parameters,
    /// The number of rows of a chunk, at most the maximum of the bulk job's chunks. The default is 500.
    #[schema(minimum = 1, maximum = 1_000_000)]
    rows: Option<u32>,
    /// The number of chunks. The default is 3.
    #[schema(minimum = 1, maximum = 100)]
    chunks: Option<u32>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Start a dry run of a bulk job
///
/// Creates a job of kind `milepost.dry-run.NAME`. A worker that runs the bulk job applies a few real chunks and rolls them back; the result of the job is
/// their cost, and an estimate for the whole run. While the chunks run, they lock their rows, and on SQLite they block other writers.
#[utoipa::path(
    post, path = "/v1/bulk-runs/dry-run", tag = "bulk jobs", params(IdempotencyKey), request_body = DryRunRequest,
    responses((status = 201, body = Created), (status = 200, description = "It already existed under this key", body = Created)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn start_dry_run(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<DryRunRequest>,
) -> Result<Created, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let dry_run = DryRun {
        rows: request.rows.unwrap_or(FIRST_ROWS),
        chunks: request.chunks.unwrap_or(CHUNKS_DEFAULT),
        ..DryRun::new(request.name, request.parameters)
    };
    let mut job = new_dry_run(dry_run, None, store.as_ref()).await?;
    let keyed = idempotency.give(&mut job.key, 0);
    let created = store.enqueue(&job).await?;
    if keyed && created.duplicate {
        idempotency::check_held(app.store.as_ref(), &job).await?;
    }
    Ok(created.into())
}

/// Returns the job of a dry run. The beginning of the file is added to it, if the targets come from one.
pub(crate) async fn new_dry_run(
    mut dry_run: DryRun,
    file: Option<TargetFile>,
    store: &dyn Store,
) -> Result<NewJob, Problem> {
    let definition = definition(&dry_run.bulk, store).await.map_err(|it| it.at("name"))?;
    dry_run.check(&definition).map_err(|invalid| refused(&invalid))?;
    definition.check_parameters(&dry_run.parameters).map_err(|invalid| refused(&invalid).at("parameters"))?;
    dry_run.file = match (definition.columns.clone(), file) {
        (Some(columns), Some(file)) => Some(file.sample(columns, dry_run.rows_in_all()).await?),
        (None, None) => None,
        (Some(_), None) => {
            let words = "its targets come from a file; use the form of the console, or `milepost bulk dry-run --from FILE`";
            return Err(Problem::new(Code::InvalidBulk, words).at("name"));
        }
        (None, Some(_)) => {
            let words = "its targets come from tables, by the SQL of its source: give no file";
            return Err(Problem::new(Code::InvalidBulk, words).at("name"));
        }
    };
    let job = dry_run.job(&definition).map_err(create::invalid_run)?;
    job.check(PAYLOAD_BYTES_MAX).map_err(create::invalid_run)?;
    Ok(job)
}

fn refused(invalid: &InvalidBulk) -> Problem {
    Problem::new(Code::InvalidBulk, invalid.to_string())
}
