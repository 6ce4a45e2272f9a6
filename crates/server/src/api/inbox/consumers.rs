//! Consumers: settings, expected sequences, and gaps.

use std::time::Duration;

use axum::Json;
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
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_consumers))
        .routes(routes!(put_consumer))
        .routes(routes!(expect_from))
        .routes(routes!(list_gaps))
}

/// A consumer, with the counts of its inbox.
#[derive(Debug, Serialize, ToSchema)]
struct ConsumerRow {
    /// Its name.
    name: String,
    /// How long events wait for a missing earlier event, in milliseconds.
    gap_wait_ms: u64,
    /// Maximum number of waiting events of one aggregate.
    parked_max: u32,
    /// What happens when these limits are exceeded.
    gap_policy: GapPolicy,
    /// Whether the first received event of an aggregate is accepted with any sequence.
    begins_anywhere: bool,
    /// Number of aggregates whose events it consumes.
    aggregates: u64,
    /// Number of waiting events.
    parked: u64,
    /// Number of dead letters.
    dead: u64,
    /// Number of duplicates that were detected.
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
/// Consumers that have settings or have consumed events, ordered by name.
#[utoipa::path(
    get, path = "/v1/consumers", tag = "inbox", responses((status = 200, body = Vec<ConsumerRow>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn list_consumers(app: App) -> Result<Json<Vec<ConsumerRow>>, Problem> {
    Ok(Json(app.store.consumers().await?.into_iter().map(ConsumerRow::from).collect()))
}

/// The settings of a consumer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConsumerRequest {
    /// How long events wait for a missing earlier event, in milliseconds. The default is ten minutes.
    gap_wait_ms: Option<u64>,
    /// Maximum number of waiting events of one aggregate. The default is 1,000.
    #[schema(minimum = 1, maximum = 100_000)]
    parked_max: Option<u32>,
    /// What happens when these limits are exceeded. The default is `dead_letter`.
    gap_policy: Option<GapPolicy>,
    /// Whether the first received event of an aggregate is accepted with any sequence. The default is `false`.
    #[serde(default)]
    begins_anywhere: bool,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Set the settings of a consumer
///
/// Replaces all settings; omitted fields get their defaults. Existing gaps keep their deadlines.
#[utoipa::path(
    put, path = "/v1/consumers/{name}", tag = "inbox", params(("name" = String, Path, description = "The consumer")),
    request_body = ConsumerRequest, responses((status = 204)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn put_consumer(
    app: App,
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

/// The start position of a consumer in an aggregate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRequest {
    /// The type of the aggregate.
    aggregate_type: String,
    /// The id of the aggregate.
    aggregate_id: String,
    /// The sequence of the first event to consume.
    #[schema(minimum = 1)]
    from_seq: i64,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct ExpectAnswer {
    /// Whether the position changed: it never moves back.
    changed: bool,
}

/// Set the start position of a consumer in an aggregate
///
/// Earlier events then count as duplicates. Waiting events follow with the consumer's next check, or with its next event.
#[utoipa::path(
    post, path = "/v1/consumers/{name}/expect", tag = "inbox", params(("name" = String, Path, description = "The consumer")),
    request_body = ExpectRequest, responses((status = 200, body = ExpectAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn expect_from(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<ExpectRequest>,
) -> Result<Json<ExpectAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let aggregate = Aggregate::new(request.aggregate_type, request.aggregate_id);
    let changed = store.expect_from(&name, &aggregate, request.from_seq).await?;
    Ok(Json(ExpectAnswer { changed }))
}

/// Filter of the gaps.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct GapsParams {
    /// Only for this consumer.
    consumer: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor<AggregatePlace>>,
}

/// List gaps
///
/// Aggregates whose events wait for a missing event, ordered by deadline.
#[utoipa::path(
    get, path = "/v1/gaps", tag = "inbox", params(GapsParams), responses((status = 200, body = Page<Gap>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("inboxes belong to consumers of events, which have no queue and kind")))
)]
async fn list_gaps(app: App, Query(params): Query<GapsParams>) -> Result<Json<Page<Gap>>, Problem> {
    let limit = page::limit(params.limit)?;
    let after = params.cursor.map(|Cursor(place)| place);
    let found = app.store.gaps(params.consumer.as_deref(), after.as_ref(), limit + 1).await?;
    Ok(Json(Page::of(found, limit, |gap| Cursor(gap.place()).to_string())))
}
