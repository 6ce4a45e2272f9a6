//! What inboxes gave up.

use axum::Json;
use axum::extract::State;
use milepost_core::inbox::listing::{DeadFilter, DeadLetter, LetterId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::api::page::{self, Page};
use crate::app::App;
use crate::body::Body;
use crate::params::Query;
use crate::problem::Problem;

/// How many letters one request speaks of at most.
const LETTERS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_dead_letters)).routes(routes!(operate_dead_letters))
}

/// Which dead letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LettersParams {
    /// Only of this consumer.
    consumer: Option<String>,
    /// How many at most. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// List dead letters of inboxes
///
/// The newest first.
#[utoipa::path(
    get, path = "/v1/dead-letters", tag = "inbox", params(LettersParams), responses((status = 200, body = Page<DeadLetter>)),
    security(("token" = ["viewer"]))
)]
async fn list_dead_letters(
    State(app): State<App>,
    Query(params): Query<LettersParams>,
) -> Result<Json<Page<DeadLetter>>, Problem> {
    let limit = page::limit(params.limit)?;
    let (consumer, before) = (params.consumer, params.cursor.map(LetterId));
    let found = app.store.dead_letters(&DeadFilter { consumer, before, limit: limit + 1 }).await?;
    Ok(Json(Page::of(found, limit, |letter| letter.id.to_string())))
}

/// What is to be done with dead letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LettersRequest {
    /// What.
    operation: LetterOperation,
    /// Which, by their ids; all or none.
    #[schema(min_items = 1, max_items = 1000)]
    ids: Vec<LetterId>,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done with a dead letter.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum LetterOperation {
    /// Its event waits again for the one that is missing before it.
    Retry,
    /// It is gone for good.
    Drop,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct LettersAnswer {
    /// How many wait again, or are gone.
    letters: u64,
}

/// Do something with dead letters of inboxes
///
/// Noted in the audit. 409 when a consumer has gone on past one that is to be retried.
#[utoipa::path(
    post, path = "/v1/dead-letters/operate", tag = "inbox", request_body = LettersRequest,
    responses((status = 200, body = LettersAnswer)), security(("token" = ["operator"]))
)]
async fn operate_dead_letters(
    State(app): State<App>,
    actor: RequestActor,
    Body(request): Body<LettersRequest>,
) -> Result<Json<LettersAnswer>, Problem> {
    page::check_count(request.ids.len(), LETTERS_MAX, "ids")?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let mut ids = request.ids;
    ids.sort_unstable();
    ids.dedup();
    let letters = match request.operation {
        LetterOperation::Retry => store.retry_dead(&ids).await?,
        LetterOperation::Drop => store.drop_dead(&ids).await?,
    };
    Ok(Json(LettersAnswer { letters }))
}
