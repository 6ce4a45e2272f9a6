//! Emitting and listing events.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use milepost_core::event::listing::{EventFilter, EventPage, LoggedEvent};
use milepost_core::event::{Aggregate, InvalidEvent, NewEvent};
use milepost_core::ident::EventId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::{self, Page};
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::IdempotencyKey;
use crate::params::Query;
use crate::problem::{Code, Problem};

/// Maximum number of events in one request.
const EVENTS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
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
    responses((status = 201, body = EmitAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("events belong to aggregates, which have no queue and kind; /v1/stream shows the state changes of its jobs")))
)]
async fn emit_events(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Body(request): Body<EmitRequest>,
) -> Result<(StatusCode, Json<EmitAnswer>), Problem> {
    page::check_count(request.events.len(), EVENTS_MAX, "events")?;
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let events = request.events.into_iter().enumerate().map(|(index, event)| {
        event.into_event(idempotency.id(index).map(EventId)).map_err(|invalid| {
            Problem::new(Code::InvalidEvent, invalid.to_string()).at(format!("events[{index}]"))
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
/// Newest first. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", params(EventsParams), responses((status = 200, body = Page<LoggedEvent>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("events belong to aggregates, which have no queue and kind; /v1/stream shows the state changes of its jobs")))
)]
async fn list_events(app: App, Query(params): Query<EventsParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    let aggregate = match (params.aggregate_type, params.aggregate_id) {
        (Some(kind), Some(id)) => Some(Aggregate { kind, id }),
        (None, None) => None,
        _ => {
            let words = "an aggregate needs both aggregate_type and aggregate_id";
            return Err(Problem::new(Code::InvalidParameter, words).at("query aggregate_id"));
        }
    };
    let store = app.store.as_ref();
    let read = |before, limit| {
        let (aggregate, event_type) = (aggregate.clone(), params.event_type.clone());
        let filter = EventFilter { aggregate, event_type, page: EventPage::Before(before), limit };
        async move { store.events(&filter).await }
    };
    page::of_large_rows(&app, params.cursor, limit, |event: &LoggedEvent| event.pos, read).await
}
