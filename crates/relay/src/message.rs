//! Conversion of events to messages, shared by all sinks.
//!
//! Messages are [CloudEvents](https://cloudevents.io) 1.0 in binary mode: headers hold the attributes of the event, and the body is its payload,
//! unchanged.

use std::borrow::Cow;

use milepost_core::event::Event;

/// Content type of every payload.
pub(crate) const CONTENT_TYPE: &str = "application/json";
/// Default of the attribute `source`.
pub(crate) const SOURCE_DEFAULT: &str = "milepost";

/// An event as a message.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    event: &'a Event,
    source: &'a str,
}

impl<'a> Message<'a> {
    pub(crate) const fn new(event: &'a Event, source: &'a str) -> Self {
        Self { event, source }
    }

    /// Returns the attributes, without the prefix of the broker's binding. The content type is not included: each broker has a separate header for it.
    pub(crate) fn attributes(self) -> [(&'static str, Cow<'a, str>); 9] {
        let event = self.event;
        [
            ("specversion", "1.0".into()),
            ("id", event.id.to_string().into()),
            ("source", self.source.into()),
            ("type", event.event_type.as_str().into()),
            ("subject", event.aggregate.id.as_str().into()),
            ("time", event.emitted_at.to_string().into()),
            ("aggregatetype", event.aggregate.kind.as_str().into()),
            ("aggregateid", event.aggregate.id.as_str().into()),
            ("aggregateseq", event.sequence.to_string().into()),
        ]
    }

    /// Returns the custom headers of the event. Headers whose name is reserved for the message or the broker are omitted. A reserved name that ends
    /// with a hyphen matches every name with this prefix.
    pub(crate) fn own_headers(
        self,
        names_of_the_broker: &'static [&'static str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let headers = self.event.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        headers.filter(move |(name, _)| !is_reserved(name, names_of_the_broker))
    }

    /// Returns the payload as it was stored.
    pub(crate) fn body(self) -> &'a [u8] {
        self.event.payload.get().as_bytes()
    }
}

/// Returns whether a header name is reserved for the message or is one of these names of the broker.
pub(crate) fn is_reserved(name: &str, names_of_the_broker: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let is_like = |other: &&str| name == **other || other.ends_with('-') && name.starts_with(*other);
    name.starts_with("ce_") || ["content-type", "ce-"].iter().chain(names_of_the_broker).any(is_like)
}

#[cfg(test)]
mod tests {
    use milepost_core::event::Aggregate;
    use milepost_core::ident::EventId;
    use serde_json::value::RawValue;

    use super::*;

    fn paid(headers: &[(&str, &str)]) -> Event {
        Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", "17"),
            sequence: 3,
            event_type: "order.paid".to_owned(),
            payload: RawValue::from_string(r#"{ "cents" : 1200 }"#.to_owned()).unwrap(),
            headers: headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            emitted_at: "2026-03-01T12:00:00.25Z".parse().unwrap(),
        }
    }

    #[test]
    fn an_event_is_described_by_its_attributes_and_its_payload_stays_as_it_is() {
        let event = paid(&[]);
        let message = Message::new(&event, "shop");
        let said = |name| message.attributes().into_iter().find(|(key, _)| *key == name).unwrap().1;
        assert_eq!(said("id"), event.id.to_string());
        assert_eq!(said("source"), "shop");
        assert_eq!(said("type"), "order.paid");
        assert_eq!(said("subject"), "17");
        assert_eq!(said("time"), "2026-03-01T12:00:00.25Z");
        assert_eq!((said("aggregatetype"), said("aggregateseq")), ("order".into(), "3".into()));
        assert_eq!(message.body(), br#"{ "cents" : 1200 }"#);
    }

    #[test]
    fn headers_go_along_but_none_that_the_message_or_the_broker_has() {
        let event = paid(&[
            ("Content-Type", "text/plain"),
            ("CE-id", "1"),
            ("ce_type", "x"),
            ("Nats-Rollup", "all"),
            ("CC", "x"),
            ("ccy", "EUR"),
            ("traceparent", "00-4bf9-01"),
        ]);
        let own: Vec<_> = Message::new(&event, "shop").own_headers(&["nats-", "cc"]).collect();
        assert_eq!(own, [("ccy", "EUR"), ("traceparent", "00-4bf9-01")]);
    }
}
