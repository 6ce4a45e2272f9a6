//! Conversion of messages to events: the counterpart of `message`.

use std::collections::BTreeMap;
use std::str::FromStr;

use milepost_core::event::{Aggregate, Event};
use serde_json::value::RawValue;

use super::Malformed;

/// Converts a message to an event. `prefix`: the prefix of attribute names at this broker; `theirs`: prefixes of the headers that the broker adds.
pub(super) fn read(
    place: &str,
    prefix: &str,
    theirs: &[&str],
    headers: impl Iterator<Item = (String, String)>,
    body: Vec<u8>,
) -> Result<Event, Malformed> {
    let (mut attributes, mut own) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        if let Some(attribute) = lower.strip_prefix(&prefix.to_ascii_lowercase()) {
            attributes.insert(attribute.to_owned(), value);
        } else if lower != "content-type" && !theirs.iter().any(|theirs| lower.starts_with(theirs)) {
            own.insert(name, value);
        }
    }
    let malformed = |why, body| Malformed { place: place.to_owned(), why, body };
    match event(&attributes, own, &body) {
        Ok(event) => Ok(event),
        Err(why) => Err(malformed(why, body)),
    }
}

fn event(
    attributes: &BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: &[u8],
) -> Result<Event, String> {
    let payload = std::str::from_utf8(body).map_err(|_| "its body is not UTF-8 text".to_owned())?;
    let payload = RawValue::from_string(payload.to_owned()).map_err(|_| "its body is not JSON".to_owned())?;
    let sequence: i64 = parsed(attributes, "aggregateseq")?;
    if sequence < 1 {
        return Err(format!("its aggregateseq is {sequence}; it must be at least 1"));
    }
    Ok(Event {
        id: parsed(attributes, "id")?,
        aggregate: Aggregate::new(text(attributes, "aggregatetype")?, text(attributes, "aggregateid")?),
        sequence,
        event_type: text(attributes, "type")?.to_owned(),
        payload,
        headers,
        emitted_at: parsed(attributes, "time")?,
    })
}

fn text<'a>(attributes: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, String> {
    match attributes.get(name) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(format!("it has no attribute {name}")),
    }
}

fn parsed<T: FromStr>(attributes: &BTreeMap<String, String>, name: &str) -> Result<T, String> {
    text(attributes, name)?.parse().map_err(|_| format!("its attribute {name} is invalid"))
}

#[cfg(test)]
mod tests {
    use milepost_core::ident::EventId;

    use super::*;
    use crate::message::Message;

    fn sent() -> Event {
        Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", "größe"),
            sequence: 3,
            event_type: "order.paid".to_owned(),
            payload: RawValue::from_string(r#"{ "cents" : 1200 }"#.to_owned()).unwrap(),
            headers: [("traceparent".to_owned(), "00-1".to_owned())].into(),
            emitted_at: "2026-03-01T12:00:00.25Z".parse().unwrap(),
        }
    }

    fn headers(event: &Event) -> Vec<(String, String)> {
        let message = Message::new(event, "shop");
        let attributes = message.attributes();
        let attributes = attributes.iter().map(|(name, value)| (format!("ce-{name}"), value.to_string()));
        let own = message.own_headers(&[]).map(|(name, value)| (name.to_owned(), value.to_owned()));
        let brokers = [("Nats-Msg-Id", "1"), ("content-type", "application/json")];
        attributes
            .chain(own)
            .chain(brokers.map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect()
    }

    fn read_back(headers: Vec<(String, String)>, body: &str) -> Result<Event, String> {
        let read = read("NATS", "ce-", &["nats-"], headers.into_iter(), body.as_bytes().to_vec());
        read.map_err(|malformed| malformed.why)
    }

    #[test]
    fn what_was_written_is_read() {
        let sent = sent();
        let read = read_back(headers(&sent), sent.payload.get()).unwrap();
        let same = |event: &Event| serde_json::to_value(event).unwrap();
        assert_eq!(same(&read), same(&sent));
        assert_eq!(read.payload.get(), sent.payload.get());
    }

    #[test]
    fn what_is_no_event_is_told_without_what_it_holds() {
        let sent = sent();
        let without = |name: &str| headers(&sent).into_iter().filter(|(known, _)| known != name).collect();
        for name in ["id", "type", "time", "aggregatetype", "aggregateid", "aggregateseq"] {
            let why = read_back(without(&format!("ce-{name}")), "{}").unwrap_err();
            assert_eq!(why, format!("it has no attribute {name}"));
        }
        assert_eq!(read_back(headers(&sent), "s3cret").unwrap_err(), "its body is not JSON");
        let mut odd = headers(&sent);
        odd[1].1 = "s3cret".to_owned();
        assert_eq!(read_back(odd, "{}").unwrap_err(), "its attribute id is invalid");
        let malformed =
            Malformed { place: "NATS".to_owned(), why: "odd".to_owned(), body: b"s3cret".to_vec() };
        assert!(!format!("{malformed:?} {malformed}").contains("s3cret"));
    }
}
