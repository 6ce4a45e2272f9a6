//! Dead letters of inboxes.

use axum::Json;
use axum::response::Response;
use milepost_core::actions::dead_letter::LetterAction;
use milepost_core::inbox::listing::{DeadFilter, DeadLetter, LetterId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::api::page::{self, Page};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Query;
use crate::problem::Problem;

/// Maximum number of dead letters in one request.
const LETTERS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_dead_letters)).routes(routes!(operate_dead_letters))
}

/// Filter of the dead letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LettersParams {
    /// Only for this consumer.
    consumer: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// List dead letters of inboxes
///
/// Newest first. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "inbox", params(LettersParams), responses((status = 200, body = Page<DeadLetter>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn list_dead_letters(app: App, Query(params): Query<LettersParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let store = app.store.as_ref();
    let read = |before, limit| {
        let filter = DeadFilter { consumer: params.consumer.clone(), before, limit };
        async move { store.dead_letters(&filter).await }
    };
    let start = params.cursor.map(LetterId);
    page::of_large_rows(&app, start, limit, |letter: &DeadLetter| letter.id, read).await
}

/// An operation on dead letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LettersRequest {
    /// The operation.
    operation: LetterAction,
    /// The ids of the dead letters. The operation applies to all or none.
    #[schema(min_items = 1, max_items = 1000)]
    ids: Vec<LetterId>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct LettersAnswer {
    /// Number of retried or dropped dead letters.
    letters: u64,
}

/// Operate on dead letters of inboxes
///
/// Recorded in the audit log. 409 when a consumer's position is already after an event to retry.
#[utoipa::path(
    post, path = "/v1/dead-letters/operate", tag = "inbox", request_body = LettersRequest,
    responses((status = 200, body = LettersAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn operate_dead_letters(
    app: App,
    actor: RequestActor,
    Body(request): Body<LettersRequest>,
) -> Result<Json<LettersAnswer>, Problem> {
    page::check_count(request.ids.len(), LETTERS_MAX, "ids")?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let mut ids = request.ids;
    ids.sort_unstable();
    ids.dedup();
    let letters = request.operation.perform(&ids, store.as_ref()).await?;
    Ok(Json(LettersAnswer { letters }))
}
