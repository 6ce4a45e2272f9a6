//! Consumers, and what they wait for.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::AggregatePlace;
use milepost_core::inbox::listing::{ConsumerView, Gap};
use milepost_core::inbox::{Consumer, GapPolicy};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::api::cursor::Cursor;
use crate::api::page::{self, Page};
use crate::app::App;
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_consumers))
        .routes(routes!(put_consumer))
        .routes(routes!(expect_from))
        .routes(routes!(list_gaps))
}

/// A consumer and its inbox.
#[derive(Debug, Serialize, ToSchema)]
struct ConsumerRow {
    /// Its name.
    name: String,
    /// How long events wait for one that is missing before them, in milliseconds.
    gap_wait_ms: u64,
    /// How many of one aggregate wait at most.
    parked_max: u32,
    /// What happens when they have waited for too long, or are too many.
    gap_policy: GapPolicy,
    /// Whether the first event that is seen of an aggregate is taken in whatever its sequence.
    begins_anywhere: bool,
    /// Of how many aggregates it takes events in.
    aggregates: u64,
    /// How many events wait.
    parked: u64,
    /// How many dead letters there are.
    dead: u64,
    /// How many duplicates were caught.
    duplicates: u64,
}

impl From<ConsumerView> for ConsumerRow {
    fn from(view: ConsumerView) -> Self {
        let Consumer { name, gap_wait, parked_max, gap_policy, begins_anywhere } = view.consumer;
        Self {
            name,
            gap_wait_ms: u64::try_from(gap_wait.as_millis()).unwrap_or(u64::MAX),
            parked_max,
            gap_policy,
            begins_anywhere,
            aggregates: view.aggregates,
            parked: view.parked,
            dead: view.dead,
            duplicates: view.duplicates,
        }
    }
}

/// List consumers
///
/// Those that said what they want or have taken events in, by name.
#[utoipa::path(
    get, path = "/v1/consumers", tag = "inbox", responses((status = 200, body = Vec<ConsumerRow>)),
    security(("token" = ["viewer"]))
)]
async fn list_consumers(State(app): State<App>) -> Result<Json<Vec<ConsumerRow>>, Problem> {
    Ok(Json(app.store.consumers().await?.into_iter().map(ConsumerRow::from).collect()))
}

/// What a consumer wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConsumerRequest {
    /// How long events wait for one that is missing before them, in milliseconds. The default is ten minutes.
    gap_wait_ms: Option<u64>,
    /// How many of one aggregate wait at most. The default is 1,000.
    #[schema(minimum = 1, maximum = 100_000)]
    parked_max: Option<u32>,
    /// What happens when they have waited for too long, or are too many. The default is `dead_letter`.
    gap_policy: Option<GapPolicy>,
    /// Whether the first event that is seen of an aggregate is taken in whatever its sequence. The default is not.
    #[serde(default)]
    begins_anywhere: bool,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Say what a consumer wants
///
/// As a whole: what is not given has its default. Gaps that wait already keep their time.
#[utoipa::path(
    put, path = "/v1/consumers/{name}", tag = "inbox", params(("name" = String, Path, description = "The consumer")),
    request_body = ConsumerRequest, responses((status = 204)), security(("token" = ["operator"]))
)]
async fn put_consumer(
    State(app): State<App>,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ConsumerRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let plain = Consumer::new(name);
    let consumer = Consumer {
        gap_wait: request.gap_wait_ms.map_or(plain.gap_wait, Duration::from_millis),
        parked_max: request.parked_max.unwrap_or(plain.parked_max),
        gap_policy: request.gap_policy.unwrap_or(plain.gap_policy),
        begins_anywhere: request.begins_anywhere,
        ..plain
    };
    store.put_consumer(&consumer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// From which event on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRequest {
    /// What sort of thing the aggregate is.
    aggregate_type: String,
    /// Which one.
    aggregate_id: String,
    /// The sequence of the first event that is to be taken in.
    #[schema(minimum = 1)]
    from_seq: i64,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct ExpectAnswer {
    /// Whether that changed anything: a consumer never goes back.
    changed: bool,
}

/// Say from which event on a consumer takes those of an aggregate in
///
/// Events before it are duplicates from then on; those that wait follow when the consumer looks again, or with its next event.
#[utoipa::path(
    post, path = "/v1/consumers/{name}/expect", tag = "inbox", params(("name" = String, Path, description = "The consumer")),
    request_body = ExpectRequest, responses((status = 200, body = ExpectAnswer)), security(("token" = ["operator"]))
)]
async fn expect_from(
    State(app): State<App>,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ExpectRequest>,
) -> Result<Json<ExpectAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let aggregate = Aggregate::new(request.aggregate_type, request.aggregate_id);
    let changed = store.expect_from(&name, &aggregate, request.from_seq).await?;
    Ok(Json(ExpectAnswer { changed }))
}

/// Which gaps.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GapsParams {
    /// Only of this consumer.
    consumer: Option<String>,
    /// How many at most. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor<AggregatePlace>>,
}

/// List gaps
///
/// Aggregates of which events wait for one that is missing; those first that are given up first.
#[utoipa::path(
    get, path = "/v1/gaps", tag = "inbox", params(GapsParams), responses((status = 200, body = Page<Gap>)),
    security(("token" = ["viewer"]))
)]
async fn list_gaps(
    State(app): State<App>,
    Query(params): Query<GapsParams>,
) -> Result<Json<Page<Gap>>, Problem> {
    let limit = page::limit(params.limit)?;
    let after = params.cursor.map(|Cursor(place)| place);
    let found = app.store.gaps(params.consumer.as_deref(), after.as_ref(), limit + 1).await?;
    Ok(Json(Page::of(found, limit, |gap| Cursor(gap.place()).to_string())))
}
