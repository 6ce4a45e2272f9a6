//! Emitting and listing events.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use milepost_core::event::listing::{EventFilter, EventPage, LoggedEvent};
use milepost_core::event::{Aggregate, InvalidEvent, NewEvent};
use milepost_core::ident::EventId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::{self, Page};
use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::idempotency::IdempotencyKey;
use crate::params::Query;
use crate::problem::Problem;

/// Maximum number of events in one request.
const EVENTS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(emit_events, list_events))
}

/// Events to emit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EmitRequest {
    /// The events. Events of the same aggregate are emitted in this order.
    #[schema(min_items = 1, max_items = 1000)]
    events: Vec<EventRequest>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// An event to emit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EventRequest {
    /// The type of its aggregate.
    #[schema(min_length = 1, max_length = 200, examples("order"))]
    aggregate_type: String,
    /// The id of its aggregate.
    #[schema(min_length = 1, max_length = 1000, examples("17"))]
    aggregate_id: String,
    /// Its type.
    #[schema(min_length = 1, max_length = 200, examples("order.paid"))]
    event_type: String,
    /// Its payload, which is published byte for byte. The default is `{}`.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Its permanent id. Emitting it again with the same content changes nothing.
    event_id: Option<EventId>,
    /// Its sequence in its aggregate, if the application assigns sequences: it must follow the last one.
    #[schema(minimum = 1)]
    aggregate_seq: Option<i64>,
    /// Whether the sequence may skip numbers.
    #[serde(default)]
    gap_allowed: bool,
    /// Its headers.
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl EventRequest {
    fn into_event(self, id: Option<EventId>) -> Result<NewEvent, InvalidEvent> {
        let aggregate = Aggregate::new(self.aggregate_type, self.aggregate_id);
        let mut event = NewEvent::new(aggregate, self.event_type, &serde_json::Map::new())?;
        event.id = self.event_id.or(id).unwrap_or(event.id);
        event.payload = self.payload.unwrap_or(event.payload);
        event.sequence = self.aggregate_seq;
        event.gap_allowed = self.gap_allowed;
        event.headers = self.headers;
        event.check(PAYLOAD_BYTES_MAX)?;
        Ok(event)
    }
}

/// The emitted events, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
struct EmitAnswer {
    /// The events.
    events: Vec<EmittedEvent>,
}

/// An emitted event.
#[derive(Debug, Serialize, ToSchema)]
struct EmittedEvent {
    /// Its id.
    event_id: EventId,
    /// Its sequence in its aggregate.
    aggregate_seq: i64,
    /// Whether it already existed. In that case nothing was changed.
    duplicate: bool,
}

/// Emit events
///
/// All or none, in one transaction. With ids, or with the header `Idempotency-Key` instead, the request can be repeated safely; a repetition
/// with further events emits those.
#[utoipa::path(
    post, path = "/v1/events", tag = "events", params(IdempotencyKey), request_body = EmitRequest,
    responses((status = 201, body = EmitAnswer)), security(("token" = ["operator"]))
)]
async fn emit_events(
    State(app): State<App>,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<EmitRequest>,
) -> Result<(StatusCode, Json<EmitAnswer>), Problem> {
    page::check_count(request.events.len(), EVENTS_MAX, "events")?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let events = request.events.into_iter().enumerate().map(|(index, event)| {
        event.into_event(idempotency.id(index).map(EventId)).map_err(|invalid| {
            Problem::unprocessable("invalid_event", invalid.to_string()).at(format!("events[{index}]"))
        })
    });
    let events: Vec<NewEvent> = events.collect::<Result<_, _>>()?;
    let emitted = store.emit_many(&events).await?;
    let emitted = events.iter().zip(emitted).map(|(event, emitted)| EmittedEvent {
        event_id: event.id,
        aggregate_seq: emitted.sequence,
        duplicate: emitted.duplicate,
    });
    Ok((StatusCode::CREATED, Json(EmitAnswer { events: emitted.collect() })))
}

/// The size of the payloads at which a page ends, in bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The number of events that are read first, and the maximum number that is read in one step: each can have a megabyte.
const STEP_ROWS: usize = 4;
const STEP_ROWS_MAX: usize = 32;

/// Filter of the events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsParams {
    /// Only events of this aggregate type; needs `aggregate_id`.
    aggregate_type: Option<String>,
    /// Only events of this aggregate id; needs `aggregate_type`.
    aggregate_id: Option<String>,
    /// Only events of this type.
    event_type: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// List events
///
/// Newest first. A page also ends when its payloads have 4 MiB.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", params(EventsParams), responses((status = 200, body = Page<LoggedEvent>)),
    security(("token" = ["viewer"]))
)]
async fn list_events(
    State(app): State<App>,
    Query(params): Query<EventsParams>,
) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let aggregate = match (params.aggregate_type, params.aggregate_id) {
        (Some(kind), Some(id)) => Some(Aggregate { kind, id }),
        (None, None) => None,
        _ => {
            let words = "an aggregate needs both aggregate_type and aggregate_id";
            return Err(Problem::bad_request("invalid_parameter", words).at("query aggregate_id"));
        }
    };
    let page = EventPage::Before(params.cursor);
    let filter = EventFilter { aggregate, event_type: params.event_type, page, limit };
    let _permit = app.large.acquire().await;
    Ok(Json(newest(filter, app.store.as_ref()).await?).into_response())
}

/// Reads a page in steps, because a row can have a megabyte. It ends before `limit` when its payloads have [`PAGE_BYTES`].
async fn newest(mut filter: EventFilter, store: &dyn Store) -> Result<Page<LoggedEvent>, Problem> {
    let limit = filter.limit as usize;
    let (mut items, mut bytes, mut step) = (Vec::new(), 0, STEP_ROWS);
    loop {
        // One more than the page has, to know whether there is a next one.
        let wanted = (limit + 1 - items.len()).min(step);
        filter.limit = u32::try_from(wanted).unwrap_or(u32::MAX);
        let found = store.events(&filter).await?;
        let is_last = found.len() < wanted;
        bytes += found.iter().map(|event| event.event.payload.get().len()).sum::<usize>();
        items.extend(found);
        if is_last || items.len() > limit || bytes >= PAGE_BYTES {
            let is_cut = !is_last && items.len() <= limit;
            let mut page =
                Page::of(items, u32::try_from(limit).unwrap_or(u32::MAX), |event| event.pos.to_string());
            if let (true, Some(last)) = (is_cut, page.items.last()) {
                page.next_cursor = Some(last.pos.to_string());
            }
            return Ok(page);
        }
        filter.page = EventPage::Before(items.last().map(|event| event.pos));
        // As many as fit, if they are as large as those before.
        step = (items.len() * (PAGE_BYTES - bytes) / bytes.max(1)).clamp(1, STEP_ROWS_MAX.min(4 * step));
    }
}
