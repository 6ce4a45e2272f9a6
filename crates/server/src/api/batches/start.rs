//! Starting batches.

use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::nominal::NominalTime;
use milepost_core::batch::start::{NewBatch, Started, check_fit_of_text};
use milepost_core::dag::definition::Definition;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::api::dags;
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::{self, IdempotencyKey};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(start_batch))
}

/// A batch to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchRequest {
    /// Its DAG.
    dag: String,
    /// The version: its number, or the first digits of its hash. The default is the latest.
    version: Option<String>,
    /// A unique key among the batches of the DAG. A repeated request with the same key returns the same batch.
    #[schema(min_length = 1, max_length = 1000)]
    key: Option<String>,
    /// The value of `input` in the expressions of the DAG. The default is `{}`.
    #[schema(value_type = Option<serde_json::Value>)]
    input: Option<Box<RawValue>>,
    /// The tick of the batch, in RFC 3339, as if a schedule had started it: the value of `tick` in the expressions of the DAG.
    nominal_at: Option<Timestamp>,
    /// The time zone of the tick's date: an IANA name. The default is `UTC`.
    nominal_zone: Option<String>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The batch of a request.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
struct StartedBatch {
    /// Its id.
    id: BatchId,
    /// Whether it already existed under this key. In that case nothing was changed.
    duplicate: bool,
}

impl IntoResponse for StartedBatch {
    fn into_response(self) -> Response {
        idempotency::made(self.duplicate, format!("/v1/batches/{}", self.id), self)
    }
}

/// Start a batch
///
/// With a `key`, or with the header `Idempotency-Key` instead, the request can be repeated safely.
#[utoipa::path(
    post, path = "/v1/batches", tag = "batches", params(IdempotencyKey), request_body = BatchRequest,
    responses((status = 201, body = StartedBatch), (status = 200, description = "It already existed under this key", body = StartedBatch)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn start_batch(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<BatchRequest>,
) -> Result<StartedBatch, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let store = store.as_ref();
    let mut batch = NewBatch::new(request.dag, &serde_json::Map::new()).map_err(StoreError::from)?;
    batch.input = request.input.unwrap_or(batch.input);
    batch.key = request.key;
    batch.nominal = nominal(request.nominal_at, request.nominal_zone)?;
    let keyed = idempotency.give(&mut batch.key, 0);
    let started = start_checked(&app, store, batch.clone(), request.version.as_deref()).await?;
    if keyed && started.duplicate {
        idempotency::check_same_batch(store, &app.hidden, &batch, started.batch).await?;
    }
    Ok(StartedBatch { id: started.batch, duplicate: started.duplicate })
}

/// Starts a batch of the latest version, or of the given one, after its input was checked against the schema of the DAG.
pub(crate) async fn start_checked(
    app: &App,
    store: &dyn Store,
    mut batch: NewBatch,
    version: Option<&str>,
) -> Result<Started, Problem> {
    batch.check(PAYLOAD_BYTES_MAX).map_err(StoreError::from)?;
    let version = match version {
        Some(text) => Some(dags::version(&batch.dag, text, store).await.map_err(|it| it.at("version"))?),
        None => None,
    };
    let permit = app.large.permit().await;
    let (view, definition) =
        dags::definition(&permit, &batch.dag, version, store).await.map_err(|problem| problem.at("dag"))?;
    let input = batch.input.clone();
    let checked = tokio::task::spawn_blocking(move || check_input(&definition, &input)).await;
    checked.map_err(|error| Problem::new(Code::CheckFailed, error.to_string()))??;
    // The start may wait for locks, and nothing large should wait for it.
    drop(permit);
    // The version whose schema was checked, even if a newer one has been stored since.
    batch.version = Some(view.version);
    Ok(store.start_batch(&batch).await?)
}

fn nominal(at: Option<Timestamp>, zone: Option<String>) -> Result<Option<NominalTime>, Problem> {
    if at.is_none() && zone.is_some() {
        let words = "zone is the time zone of nominal_at; give nominal_at, too";
        return Err(Problem::new(Code::InvalidBody, words).at("nominal_zone"));
    }
    Ok(NominalTime::of_columns(at, zone))
}

fn check_input(definition: &Definition, input: &RawValue) -> Result<(), Problem> {
    let Some(schema) = &definition.input_schema else { return Ok(()) };
    let refuse = |invalid: InvalidBatch| Problem::from(StoreError::from(invalid)).at("input");
    check_fit_of_text(schema, input.get()).map_err(refuse)
}
