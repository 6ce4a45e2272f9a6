//! Dead letters of subscriptions.

use axum::http::StatusCode;
use axum::response::Response;
use milepost_core::actions::dead_letter::DeadEventAction;
use milepost_core::event::listing::DeadPlace;
use milepost_core::event::relay_listing::DeadView;
use milepost_core::ident::EventId;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::api::cursor::Cursor;
use crate::api::page::{self, Page};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_dead_events)).routes(routes!(operate_dead_event))
}

/// Filter of the events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeadParams {
    /// Only for this subscription.
    subscription: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor<DeadPlace>>,
}

/// List dead letters of subscriptions
///
/// Newest first, including skipped events. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/dead-events", tag = "events", params(DeadParams),
    responses((status = 200, body = Page<DeadView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn list_dead_events(app: App, Query(params): Query<DeadParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let (store, subscription) = (app.store.as_ref(), params.subscription.as_deref());
    let read = |before: Option<Cursor<DeadPlace>>, limit| async move {
        store.dead_events(subscription, before.as_ref().map(|Cursor(place)| place), limit).await
    };
    page::of_large_rows(&app, params.cursor.clone(), limit, |dead: &DeadView| Cursor(dead.place()), read)
        .await
}

/// An operation on a dead letter of a subscription.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeadRequest {
    /// Its subscription.
    subscription: String,
    /// The id of the event.
    event_id: EventId,
    /// The operation.
    operation: DeadEventAction,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Operate on a dead letter of a subscription
#[utoipa::path(
    post, path = "/v1/dead-events/operate", tag = "events", request_body = DeadRequest, responses((status = 204)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("subscriptions deliver the events of the whole store")))
)]
async fn operate_dead_event(
    app: App,
    actor: RequestActor,
    Body(request): Body<DeadRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    store.change_dead(&request.subscription, request.event_id, request.operation.verb()).await?;
    Ok(StatusCode::NO_CONTENT)
}
