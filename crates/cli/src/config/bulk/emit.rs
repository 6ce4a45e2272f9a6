//! `emit` of a bulk job: the event for each target.

use std::collections::BTreeMap;

use milepost::bulk::EventTemplate;
use milepost_core::event::{Aggregate, InvalidEvent, NewEvent};
use milepost_core::job::PAYLOAD_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::Node;
use super::super::fault::Faults;
use crate::nearest::nearest;

/// The events that are emitted, one for each target.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Emit {
    /// The aggregate type of the events, such as `customer`.
    aggregate_type: String,
    /// The column of the target with the id of the aggregate.
    aggregate_id: String,
    /// The event type, such as `customer.notified`.
    event_type: String,
    /// The columns of the target that become the payload. The default is all of them.
    #[serde(default)]
    #[schemars(length(min = 1))]
    payload: Option<Vec<String>>,
    /// Headers, each with the column that contains its value: `{ tenant = "tenant_id" }`.
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Emit {
    pub(super) fn template(self) -> EventTemplate {
        let Self { aggregate_type, aggregate_id, event_type, payload, headers } = self;
        EventTemplate { aggregate_type, aggregate_id, event_type, payload, headers }
    }

    /// Returns the type of its events.
    pub(super) fn event_type(&self) -> &str {
        &self.event_type
    }

    /// Returns the settings as texts, for the fingerprint.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let names = [&self.aggregate_type, &self.aggregate_id, &self.event_type];
        let headers = self.headers.iter().flat_map(|(name, column)| [name, column]);
        // A separator that is not a valid column name, so that payload columns and header columns differ in the fingerprint.
        let payload = self.payload.iter().flatten().map(String::as_str).chain(["\0"]);
        names.into_iter().map(String::as_str).chain(payload).chain(headers.map(String::as_str))
    }
}

/// Checks names, and columns as far as possible without a database.
pub(super) fn check(bulk: &Node, faults: &mut Faults) {
    let Some(emit) = bulk.get("emit") else { return };
    let text = |key: &str| emit.get(key).and_then(|node| Some((node, node.text()?)));
    let named = |node: &Node, event: Result<NewEvent, InvalidEvent>, faults: &mut Faults| {
        if let Err(invalid) = event.and_then(|event| event.check(PAYLOAD_BYTES_MAX)) {
            faults.add(node.span.start, invalid.to_string(), "docs/EVENTS.md describes the limits of events");
        }
    };
    let event = |aggregate: &str, of: &str| NewEvent::new(Aggregate::new(aggregate, "id"), of, &());
    if let Some((node, name)) = text("aggregate_type") {
        named(node, event(name, "type"), faults);
    }
    if let Some((node, name)) = text("event_type") {
        named(node, event("type", name), faults);
    }
    let headers = emit.get("headers").map(Node::entries).unwrap_or_default();
    for header in headers {
        let of_header = event("type", "type").map(|event| event.header(header.key.as_str(), ""));
        named(&header.node, of_header, faults);
    }
    let payload = emit.get("payload").map(Node::nodes).unwrap_or_default();
    let columns =
        emit.get("aggregate_id").into_iter().chain(payload).chain(headers.iter().map(|its| &its.node));
    columns.for_each(|node| check_column(bulk, node, faults));
}

/// Reports a column that is not one of the file's columns.
fn check_column(bulk: &Node, node: &Node, faults: &mut Faults) {
    let (Some(columns), Some(column)) = (bulk.get("columns"), node.text()) else { return };
    let known: Vec<&str> = columns.entries().iter().map(|entry| entry.key.as_str()).chain(["n"]).collect();
    if !columns.is_table() || known.contains(&column) {
        return;
    }
    let remedy = match nearest(column, &known) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("columns are {}", known.join(", ")),
    };
    faults.add(node.span.start, format!("there is no column {column} in the file"), remedy);
}
