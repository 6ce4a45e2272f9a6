//! Starting runs over the rows of a file.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::job::{PAYLOAD_BYTES_MAX, Priority};
use milepost_records::Format;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::start::{StartedRun, new_run_over_file};
use crate::actor::RequestActor;
use crate::api::create;
use crate::app::{App, Server};
use crate::body;
use crate::idempotency::{self, IdempotencyKey};
use crate::params::Query;
use crate::problem::{Code, Problem};
use crate::target_file::TargetFile;

/// The name of a file without one.
const NAME_DEFAULT: &str = "a file";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(start_bulk_run_over_file))
}

/// A run over a file to start.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FileParams {
    /// The name of the bulk job.
    name: String,
    /// The name of the file, for operators.
    file: Option<String>,
    /// The named parameters of its SQL: a JSON object.
    #[param(example = "{\"place\": 4711}")]
    parameters: Option<String>,
    /// A unique key among the runs of the bulk job. A repeated request with the same key returns the same run.
    #[param(min_length = 1, max_length = 1000)]
    key: Option<String>,
    /// The priority within the group: from 1 (first) to 4 (last). The default is that of the definition.
    #[param(minimum = 1, maximum = 4)]
    priority: Option<u8>,
    /// Delay before the start, in milliseconds from now. Cannot be combined with `start_at`.
    delay_ms: Option<u64>,
    /// The earliest start time.
    #[param(value_type = Option<String>, format = DateTime)]
    start_at: Option<Timestamp>,
    /// The reason, for the audit log.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Start a run of a bulk job over a file
///
/// For a bulk job whose targets come from a file. The body is the file: rows of CSV with the columns' names first (`text/csv`), or a JSON object
/// per line (`application/x-ndjson`). The whole file is checked first: if a row is bad, nothing is started. Larger files than a body may have can be
/// started with `milepost bulk start --from FILE`. A repeated request with the same `Idempotency-Key` returns the same run; its parameters and the
/// number of its rows are compared.
#[utoipa::path(
    post, path = "/v1/bulk-runs/from-file", tag = "bulk jobs", params(IdempotencyKey, FileParams),
    request_body(content(("text/csv"), ("application/x-ndjson")), description = "The file"),
    responses((status = 201, body = StartedRun), (status = 200, description = "It already existed under this key", body = StartedRun)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn start_bulk_run_over_file(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Query(params): Query<FileParams>,
    headers: HeaderMap,
    sent: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    let format = format_of(&headers)?;
    let bytes = sent.map_err(|rejection| body::unreadable(&rejection))?;
    let parameters =
        params.parameters.as_deref().map_or_else(|| Some(Parameters::default()), Parameters::read);
    let parameters = parameters.ok_or_else(|| {
        Problem::new(Code::InvalidParameter, "it must be a JSON object").at("query parameters")
    })?;
    let (mut job, columns) = new_run_over_file(&params.name, &parameters, app.store.as_ref()).await?;
    job.key = params.key;
    let keyed = idempotency.give(&mut job.key, 0);
    job.start = create::start(params.delay_ms, params.start_at)?;
    if let Some(priority) = params.priority {
        let priority = Priority::try_from(priority);
        job.priority =
            priority.map_err(|e| Problem::new(Code::InvalidParameter, e.to_string()).at("query priority"))?;
    }
    job.check(PAYLOAD_BYTES_MAX).map_err(create::invalid_run)?;
    let name = params.file.as_deref().unwrap_or(NAME_DEFAULT);
    let file = TargetFile::new(name, format, bytes);
    let (started, rows) = file.start(store.as_ref(), columns, &job).await?;
    if keyed && started.duplicate {
        idempotency::check_held(app.store.as_ref(), &job).await?;
        idempotency::check_rows(app.store.as_ref(), started.job, rows).await?;
    }
    Ok(StartedRun::from(started).into_response())
}

fn format_of(headers: &HeaderMap) -> Result<Format, Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "text/csv" => Ok(Format::Csv),
        "application/x-ndjson" | "application/jsonl" => Ok(Format::Jsonl),
        _ => Err(wrong_type(given)),
    }
}

fn wrong_type(given: &str) -> Problem {
    let words = format!(
        "the body must be a file, with the header Content-Type: text/csv or application/x-ndjson; it is {given:?}"
    );
    Problem::new(Code::InvalidBody, words).at("header Content-Type")
}
