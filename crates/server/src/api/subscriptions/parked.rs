//! Parked aggregates.

use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use milepost_core::actions::parked::{InvalidEdit, ParkedAction};
use milepost_core::event::Aggregate;
use milepost_core::event::listing::AggregatePlace;
use milepost_core::event::relay_listing::{ParkedVerb, ParkedView};
use milepost_core::ident::EventId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::{RequestActor, Why};
use crate::api::cursor::Cursor;
use crate::api::page::{self, Page};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_parked))
        .routes(routes!(operate_parked))
        .routes(routes!(retry_all_parked))
}

/// Filter of the parked aggregates.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ParkedParams {
    /// Only for this subscription.
    subscription: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor<AggregatePlace>>,
}

/// List parked aggregates
///
/// Longest waiting first. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/parked", tag = "events", params(ParkedParams),
    responses((status = 200, body = Page<ParkedView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn list_parked(app: App, Query(params): Query<ParkedParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let (store, subscription) = (app.store.as_ref(), params.subscription.as_deref());
    let read = |after: Option<Cursor<AggregatePlace>>, limit| async move {
        store.parked(subscription, after.as_ref().map(|Cursor(place)| place), limit).await
    };
    let start = params.cursor.clone();
    page::of_large_rows(&app, start, limit, |parked: &ParkedView| Cursor(parked.place()), read).await
}

/// An operation on a parked aggregate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ParkedRequest {
    /// Its subscription.
    subscription: String,
    /// The type of the aggregate.
    aggregate_type: String,
    /// The id of the aggregate.
    aggregate_id: String,
    /// The event that is meant; if another one is the first, nothing is changed. The default is the first one.
    event_id: Option<EventId>,
    /// The operation.
    operation: ParkedAction,
    /// The payload to publish instead of that of its first event (edit).
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Operate on a parked aggregate
///
/// Retry, skip or edit its first event.
#[utoipa::path(
    post, path = "/v1/parked/operate", tag = "events", request_body = ParkedRequest, responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn operate_parked(
    app: App,
    actor: RequestActor,
    Body(request): Body<ParkedRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let verb = request.operation.verb(request.payload.as_deref().map(RawValue::get)).map_err(|invalid| {
        let code =
            if matches!(invalid, InvalidEdit::Payload(_)) { Code::InvalidEvent } else { Code::InvalidBody };
        Problem::new(code, invalid.to_string()).at("payload")
    })?;
    let aggregate = Aggregate::new(request.aggregate_type, request.aggregate_id);
    store.change_parked(&request.subscription, &aggregate, request.event_id, &verb).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct RetriedAnswer {
    /// Number of aggregates whose first event is retried now.
    retried: usize,
    /// Number of aggregates that were parked, but whose first event was published or dead-lettered before its turn.
    unchanged: usize,
}

/// Retry all parked aggregates
///
/// Retries the first event of each parked aggregate of a subscription, of at most 10,000 in one request.
#[utoipa::path(
    post, path = "/v1/subscriptions/{name}/retry-parked", tag = "events", params(("name" = String, Path, description = "The subscription"), Why),
    responses((status = 200, body = RetriedAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn retry_all_parked(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Query(why): Query<Why>,
) -> Result<Json<RetriedAnswer>, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    let changed = store.change_all_parked(&name, &ParkedVerb::Retry).await?;
    let retried = changed.iter().filter(|(_, is_changed)| *is_changed).count();
    Ok(Json(RetriedAnswer { retried, unchanged: changed.len() - retried }))
}
