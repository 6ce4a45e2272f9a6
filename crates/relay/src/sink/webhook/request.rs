//! An event as a request.

use std::time::{SystemTime, UNIX_EPOCH};

use milepost_core::event::Event;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::signature::Signer;
use crate::message::{CONTENT_TYPE as JSON, Message};

/// What the attributes of CloudEvents are escaped for in HTTP, besides what is not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');
/// Headers of the connection, and of what is done with the body: none that an event has is sent.
const OF_HTTP: [&str; 13] = [
    "webhook-",
    "proxy-",
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "content-length",
    "content-encoding",
    "user-agent",
];

/// The headers of an event; why it can have none, else.
pub(super) fn headers(event: &Event, source: &str, signer: &Signer) -> Result<HeaderMap, String> {
    let message = Message::new(event, source);
    let mut headers = HeaderMap::new();
    // First its own, so that none of them takes the place of another one.
    for (name, value) in message.own_headers(&OF_HTTP) {
        insert(&mut headers, name, value)?;
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    for (name, value) in message.attributes() {
        insert(&mut headers, &format!("ce-{name}"), &utf8_percent_encode(&value, ESCAPED).to_string())?;
    }
    let (id, now) = (event.id.to_string(), now());
    insert(&mut headers, "webhook-id", &id)?;
    insert(&mut headers, "webhook-timestamp", &now.to_string())?;
    insert(&mut headers, "webhook-signature", &signer.sign(&id, now, message.body()))?;
    Ok(headers)
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let known = HeaderName::try_from(name).map_err(|_| format!("HTTP has no headers like {name:?}"))?;
    let value = HeaderValue::from_bytes(value.as_bytes());
    headers.insert(known, value.map_err(|_| format!("HTTP cannot carry the value of the header {name:?}"))?);
    Ok(())
}

/// Seconds since 1970: receivers refuse what was signed long ago.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
