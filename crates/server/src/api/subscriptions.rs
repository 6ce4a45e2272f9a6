//! Subscriptions: how far they are, what is parked and what was given up, and what operators do about it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use milepost_core::event::Aggregate;
use milepost_core::event::relay_listing::{DeadVerb, DeadView, ParkedVerb, ParkedView, SubscriptionView};
use milepost_core::ident::EventId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page;
use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_subscriptions))
        .routes(routes!(set_subscription))
        .routes(routes!(list_parked))
        .routes(routes!(operate_parked))
        .routes(routes!(list_dead_events))
        .routes(routes!(operate_dead_event))
}

/// List subscriptions
///
/// With their backlogs, what is parked, and who publishes them.
#[utoipa::path(
    get, path = "/v1/subscriptions", tag = "events", responses((status = 200, body = Vec<SubscriptionView>)),
    security(("token" = ["viewer"]))
)]
async fn list_subscriptions(State(app): State<App>) -> Result<Json<Vec<SubscriptionView>>, Problem> {
    Ok(Json(app.store.subscriptions().await?))
}

/// What is to hold of a subscription.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SubscriptionRequest {
    /// Whether nothing of it is published until it goes on.
    paused: bool,
    /// Why; needed to pause it. Stands in the audit, too.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct SubscriptionAnswer {
    /// Whether it is paused now.
    paused: bool,
}

/// Pause a subscription, or let it go on
///
/// What is on its way is waited for.
#[utoipa::path(
    put, path = "/v1/subscriptions/{name}", tag = "events", params(("name" = String, Path, description = "The subscription")),
    request_body = SubscriptionRequest, responses((status = 200, body = SubscriptionAnswer)), security(("token" = ["operator"]))
)]
async fn set_subscription(
    State(app): State<App>,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<SubscriptionRequest>,
) -> Result<Json<SubscriptionAnswer>, Problem> {
    let known = app.store.subscriptions().await?;
    if !known.iter().any(|subscription| subscription.name == name) {
        return Err(Problem::not_found("no_such_subscription", format!("there is no subscription {name:?}")));
    }
    let store = app.acting(actor.because(request.reason.as_deref())?);
    if request.paused {
        let reason = request.reason.filter(|reason| !reason.trim().is_empty()).ok_or_else(|| {
            Problem::unprocessable("invalid_body", "whoever finds it paused will ask why").at("reason")
        })?;
        store.pause_subscription(&name, &reason).await?;
    } else {
        store.resume_subscription(&name).await?;
    }
    Ok(Json(SubscriptionAnswer { paused: request.paused }))
}

/// Of which subscription, and how many.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeptParams {
    /// Only of this subscription.
    subscription: Option<String>,
    /// How many at most. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List parked aggregates
///
/// Those that have waited longest first.
#[utoipa::path(
    get, path = "/v1/parked", tag = "events", params(KeptParams), responses((status = 200, body = Vec<ParkedView>)),
    security(("token" = ["viewer"]))
)]
async fn list_parked(
    State(app): State<App>,
    Query(params): Query<KeptParams>,
) -> Result<Json<Vec<ParkedView>>, Problem> {
    let limit = page::limit(params.limit)?;
    Ok(Json(app.store.parked(params.subscription.as_deref(), limit).await?))
}

/// What is to be done with a parked aggregate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ParkedRequest {
    /// Its subscription.
    subscription: String,
    /// What sort of thing it is.
    aggregate_type: String,
    /// Which one.
    aggregate_id: String,
    /// What.
    operation: ParkedOperation,
    /// What is published instead of its first event's payload (edit).
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done with the first event of a parked aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ParkedOperation {
    /// It is tried now.
    Retry,
    /// It is kept as skipped, and the next one goes on.
    Skip,
    /// It is published with another payload.
    Edit,
}

/// Do something with a parked aggregate
///
/// Retry, skip or edit its first event.
#[utoipa::path(
    post, path = "/v1/parked/operate", tag = "events", request_body = ParkedRequest, responses((status = 204)),
    security(("token" = ["operator"]))
)]
async fn operate_parked(
    State(app): State<App>,
    actor: RequestActor,
    Body(request): Body<ParkedRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let verb = match (request.operation, request.payload) {
        (ParkedOperation::Retry, None) => ParkedVerb::Retry,
        (ParkedOperation::Skip, None) => ParkedVerb::Skip,
        (ParkedOperation::Edit, Some(payload)) => ParkedVerb::edit(payload.get())
            .map_err(|error| Problem::unprocessable("invalid_event", error.to_string()).at("payload"))?,
        (ParkedOperation::Edit, None) => {
            return Err(Problem::unprocessable("invalid_body", "an edit needs the payload").at("payload"));
        }
        (_, Some(_)) => {
            return Err(Problem::unprocessable("invalid_body", "only an edit has a payload").at("payload"));
        }
    };
    let aggregate = Aggregate::new(request.aggregate_type, request.aggregate_id);
    store.change_parked(&request.subscription, &aggregate, &verb).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List events that were given up
///
/// The newest first, those that were skipped among them.
#[utoipa::path(
    get, path = "/v1/dead-events", tag = "events", params(KeptParams), responses((status = 200, body = Vec<DeadView>)),
    security(("token" = ["viewer"]))
)]
async fn list_dead_events(
    State(app): State<App>,
    Query(params): Query<KeptParams>,
) -> Result<Json<Vec<DeadView>>, Problem> {
    let limit = page::limit(params.limit)?;
    Ok(Json(app.store.dead_events(params.subscription.as_deref(), limit).await?))
}

/// What is to be done with an event that was given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeadRequest {
    /// Its subscription.
    subscription: String,
    /// The event.
    event_id: EventId,
    /// What.
    operation: DeadOperation,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done with an event that was given up.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeadOperation {
    /// It is published now. Later events may have gone before it.
    Retry,
    /// It is forgotten.
    Drop,
}

/// Do something with an event that was given up
#[utoipa::path(
    post, path = "/v1/dead-events/operate", tag = "events", request_body = DeadRequest, responses((status = 204)),
    security(("token" = ["operator"]))
)]
async fn operate_dead_event(
    State(app): State<App>,
    actor: RequestActor,
    Body(request): Body<DeadRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let verb = match request.operation {
        DeadOperation::Retry => DeadVerb::Retry,
        DeadOperation::Drop => DeadVerb::Drop,
    };
    store.change_dead(&request.subscription, request.event_id, verb).await?;
    Ok(StatusCode::NO_CONTENT)
}
