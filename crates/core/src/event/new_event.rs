//! Events to be emitted, and their checks.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Aggregate, HEADER_BYTES_MAX, HEADERS_MAX, InvalidEvent, RESERVED, SEQUENCE_MAX};
use crate::error::StoreError;
use crate::ident::EventId;
use crate::job::error::InvalidJob;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX, check_key, check_name};
use crate::json::{check_payload, is_same_json};
use crate::trace::{TRACEPARENT, Traceparent};

/// An event to be written to the log.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its permanent id, generated here so that an emit can be repeated safely.
    pub id: EventId,
    /// Its aggregate.
    pub aggregate: Aggregate,
    /// Its sequence within the aggregate, if the caller numbers the events, for example by the version of a row; `None`: the next one.
    pub sequence: Option<i64>,
    /// Whether a given sequence may skip numbers.
    pub gap_allowed: bool,
    /// The event type.
    pub event_type: String,
    /// The payload, as JSON text.
    pub payload: Box<RawValue>,
    /// The headers; initially the `traceparent` of the active span where the event was created.
    pub headers: BTreeMap<String, String>,
}

impl NewEvent {
    /// Creates the next event of an aggregate.
    ///
    /// # Errors
    /// [`InvalidEvent::Payload`] when the payload cannot be written as JSON.
    pub fn new(
        aggregate: Aggregate,
        event_type: impl Into<String>,
        payload: &impl Serialize,
    ) -> Result<Self, InvalidEvent> {
        let not_json =
            |e: serde_json::Error| InvalidEvent::Payload(InvalidJob::NotJson { why: e.to_string() });
        let payload = serde_json::value::to_raw_value(payload).map_err(not_json)?;
        let (id, event_type) = (EventId::new(), event_type.into());
        let trace = Traceparent::current();
        let trace = trace.map(|trace| (TRACEPARENT.to_owned(), trace.to_string())).into_iter().collect();
        Ok(Self { id, aggregate, sequence: None, gap_allowed: false, event_type, payload, headers: trace })
    }

    /// Sets the id. Emitting the event again with the same id and content changes nothing.
    #[must_use]
    pub const fn id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// Sets the sequence within the aggregate, which must follow the last one.
    #[must_use]
    pub const fn sequence(mut self, sequence: i64) -> Self {
        self.sequence = Some(sequence);
        self
    }

    /// Allows the [sequence](Self::sequence) to skip numbers.
    #[must_use]
    pub const fn allow_gap(mut self) -> Self {
        self.gap_allowed = true;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Returns its sequence in an aggregate whose last sequence is `last`, or 0 if it has no events. The first event of
    /// an aggregate may have any sequence.
    ///
    /// # Errors
    /// [`InvalidEvent`] when the given sequence does not follow `last`.
    pub fn sequence_after(&self, last: i64) -> Result<i64, InvalidEvent> {
        let Some(sequence) = self.sequence else {
            let why = || format!("{} has no sequence left", self.aggregate);
            let next = Some(last + 1).filter(|_| last < SEQUENCE_MAX);
            return next.ok_or_else(|| InvalidEvent::Refused { why: why() });
        };
        let aggregate = || self.aggregate.clone();
        if sequence <= last {
            return Err(InvalidEvent::Repeated { aggregate: aggregate(), sequence, last });
        }
        if sequence - 1 > last && last > 0 && !self.gap_allowed {
            return Err(InvalidEvent::Gap { aggregate: aggregate(), sequence, last });
        }
        Ok(sequence)
    }

    /// Returns whether an existing event with the same id has the same content. Payloads are compared as [JSON
    /// values](is_same_json), and the trace is ignored.
    #[must_use]
    pub fn is_same(
        &self,
        aggregate: &Aggregate,
        event_type: &str,
        headers: &BTreeMap<String, String>,
        payload: &str,
        sequence: i64,
    ) -> bool {
        self.aggregate == *aggregate
            && self.event_type == event_type
            && own(&self.headers).eq(own(headers))
            && self.sequence.is_none_or(|given| given == sequence)
            && is_same_json(self.payload.get(), payload)
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidEvent`] with the reason.
    pub fn check(&self, payload_bytes_max: usize) -> Result<(), InvalidEvent> {
        check_name("type of the aggregate", &self.aggregate.kind, NAME_BYTES_MAX)
            .and_then(|()| check_key("id of the aggregate", &self.aggregate.id, KEY_BYTES_MAX))
            .and_then(|()| check_name("type of the event", &self.event_type, NAME_BYTES_MAX))
            .map_err(InvalidEvent::Name)?;
        if self.aggregate.kind.starts_with(RESERVED) {
            return Err(InvalidEvent::Reserved(self.aggregate.kind.clone()));
        }
        if let Some(sequence) = self.sequence.filter(|sequence| !(1..=SEQUENCE_MAX).contains(sequence)) {
            return Err(InvalidEvent::Sequence(sequence));
        }
        self.check_headers()?;
        check_payload(self.payload.get(), payload_bytes_max).map_err(InvalidEvent::Payload)
    }

    /// Checks the events of a call with [`check`](Self::check).
    ///
    /// # Errors
    /// [`StoreError::Event`] for the first invalid event.
    pub fn check_all(events: &[Self], payload_bytes_max: usize) -> Result<(), StoreError> {
        events.iter().enumerate().try_for_each(|(index, event)| {
            event.check(payload_bytes_max).map_err(|invalid| StoreError::Event { index, invalid })
        })
    }

    /// Checks the headers. They become headers of broker messages and of HTTP requests, so everything that one of these
    /// rejects is rejected here.
    fn check_headers(&self) -> Result<(), InvalidEvent> {
        let bytes = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
            return Err(InvalidEvent::Headers { count: self.headers.len(), bytes });
        }
        let mut names = HashSet::new();
        for (name, value) in &self.headers {
            let why = if !names.insert(name.to_ascii_lowercase()) {
                "is there twice: HTTP does not distinguish upper and lower case"
            } else if name.is_empty() || !name.bytes().all(is_of_name) {
                "has a name that brokers refuse: letters, digits and -_. are allowed"
            } else if value.contains(char::is_control) {
                "has control characters"
            } else {
                continue;
            };
            return Err(InvalidEvent::Header { name: name.chars().take(60).collect(), why });
        }
        Ok(())
    }
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Returns the headers that are part of the event's content: all except the trace.
fn own(headers: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    headers.iter().filter(|(name, _)| *name != TRACEPARENT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paid() -> NewEvent {
        NewEvent::new(Aggregate::new("order", "17"), "order.paid", &json!({"cents": 1200})).unwrap()
    }

    fn refusal(event: &NewEvent) -> String {
        event.check(100).unwrap_err().to_string()
    }

    #[test]
    fn an_event_with_a_header_and_a_sequence_is_accepted() {
        paid().sequence(3).header("traceparent", "00-4bf9-01").check(100).unwrap();
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut nameless = paid();
        nameless.aggregate.id.clear();
        assert!(refusal(&nameless).contains("id of the aggregate"), "{}", refusal(&nameless));
        let mut reserved = paid();
        "milepost.job.mail".clone_into(&mut reserved.aggregate.kind);
        assert!(refusal(&reserved).contains("kept for state changes"), "{}", refusal(&reserved));
        assert!(refusal(&paid().sequence(0)).contains("the sequence 0"));
        assert!(refusal(&paid().header("a b", "1")).contains(r#"header "a b""#));
        assert!(refusal(&paid().header("a", "1\n2")).contains("control characters"));
        assert!(refusal(&paid().header("a", "1".repeat(HEADER_BYTES_MAX))).contains("8193 bytes"));
        let large = NewEvent::new(Aggregate::new("a", "1"), "t", &"x".repeat(99)).unwrap();
        assert!(refusal(&large).contains("101"), "{}", refusal(&large));
    }
}
