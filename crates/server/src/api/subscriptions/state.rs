//! Listing, pausing, resuming and removing subscriptions.

use axum::Json;
use axum::http::StatusCode;
use milepost_core::error::StoreError;
use milepost_core::event::RelayError;
use milepost_core::event::relay_listing::SubscriptionView;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_subscriptions))
        .routes(routes!(set_subscription, delete_subscription))
}

/// List subscriptions
///
/// With their backlogs, parked aggregates and publishers.
#[utoipa::path(
    get, path = "/v1/subscriptions", tag = "events", responses((status = 200, body = Vec<SubscriptionView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn list_subscriptions(app: App) -> Result<Json<Vec<SubscriptionView>>, Problem> {
    Ok(Json(app.store.subscriptions().await?))
}

/// The new state of a subscription.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SubscriptionRequest {
    /// Whether the subscription is paused.
    paused: bool,
    /// The reason, for the subscription and the audit log; required for a pause.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct SubscriptionAnswer {
    /// Whether the subscription is paused now.
    paused: bool,
}

/// Pause or resume a subscription
///
/// Waits for the outcome of events that are being published.
#[utoipa::path(
    put, path = "/v1/subscriptions/{name}", tag = "events", params(("name" = String, Path, description = "The subscription")),
    request_body = SubscriptionRequest, responses((status = 200, body = SubscriptionAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn set_subscription(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<SubscriptionRequest>,
) -> Result<Json<SubscriptionAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    if request.paused {
        let reason = request
            .reason
            .filter(|reason| !reason.trim().is_empty())
            .ok_or_else(|| Problem::new(Code::InvalidBody, "give the reason for the pause").at("reason"))?;
        store.pause_subscription(&name, &reason).await?;
    } else {
        store.resume_subscription(&name).await?;
    }
    Ok(Json(SubscriptionAnswer { paused: request.paused }))
}

/// Options for removing a subscription.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ForgetParams {
    /// Whether to remove it even if it has parked aggregates or dead letters.
    #[serde(default)]
    force: bool,
    /// The reason, for the audit log.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Remove a subscription
///
/// Removes also its position, its parked aggregates and its dead letters; a relay with this subscription starts again. 409 while a relay
/// publishes it, or without `force` if parked aggregates or dead letters would be lost.
#[utoipa::path(
    delete, path = "/v1/subscriptions/{name}", tag = "events",
    params(("name" = String, Path, description = "The subscription"), ForgetParams),
    responses((status = 204)), security(("token" = ["admin"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn delete_subscription(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Query(params): Query<ForgetParams>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    let unknown = || StoreError::from(RelayError::NoSuchSubscription(name.clone()));
    let all = app.store.subscriptions().await?;
    let found = all.into_iter().find(|subscription| subscription.name == name).ok_or_else(unknown)?;
    if let Some(publisher) = found.publishers.first() {
        let words =
            format!("the subscription {name:?} is being published by {}; stop it first", publisher.label);
        return Err(Problem::new(Code::RelayRefused, words));
    }
    let (parked, dead) = (found.parked_aggregates, found.dead);
    if parked + dead > 0 && !params.force {
        let words = format!(
            "parked aggregates ({parked}) and dead letters ({dead}) would be lost; set force=true to remove them"
        );
        return Err(Problem::new(Code::RelayRefused, words).at("query force"));
    }
    if !store.remove_subscription(&name).await? {
        return Err(unknown().into());
    }
    Ok(StatusCode::NO_CONTENT)
}
