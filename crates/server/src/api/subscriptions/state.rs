//! Subscriptions as a whole.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use milepost_core::error::StoreError;
use milepost_core::event::RelayError;
use milepost_core::event::relay_listing::SubscriptionView;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_subscriptions))
        .routes(routes!(set_subscription, delete_subscription))
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

/// What may go with it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ForgetParams {
    /// Whether it is forgotten although something of it is parked or was given up.
    #[serde(default)]
    force: bool,
    /// Why; stands in the audit.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Forget a subscription
///
/// With its position, what is parked and what was given up: a relay that has it begins anew. 409 while it is published, or while there is
/// something that would be lost.
#[utoipa::path(
    delete, path = "/v1/subscriptions/{name}", tag = "events",
    params(("name" = String, Path, description = "The subscription"), ForgetParams),
    responses((status = 204)), security(("token" = ["admin"]))
)]
async fn delete_subscription(
    State(app): State<App>,
    actor: RequestActor,
    Path(name): Path<String>,
    Query(params): Query<ForgetParams>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    let unknown = || StoreError::from(RelayError::NoSuchSubscription(name.clone()));
    let all = app.store.subscriptions().await?;
    let found = all.into_iter().find(|subscription| subscription.name == name).ok_or_else(unknown)?;
    if let Some(publisher) = found.publishers.first() {
        let words = format!("the subscription {name:?} is published by {}: stop that first", publisher.label);
        return Err(Problem::conflict("relay_refused", words));
    }
    let (parked, dead) = (found.parked_aggregates, found.dead);
    if parked + dead > 0 && !params.force {
        let words = format!(
            "parked aggregates ({parked}) and dead letters ({dead}) would be forgotten; force=true does so"
        );
        return Err(Problem::conflict("relay_refused", words).at("query force"));
    }
    if !store.remove_subscription(&name).await? {
        return Err(unknown().into());
    }
    Ok(StatusCode::NO_CONTENT)
}
