//! Conversion of events to HTTP requests.

use std::time::{SystemTime, UNIX_EPOCH};

use milepost_core::event::Event;
use milepost_http::Signer;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::message::{CONTENT_TYPE as JSON, Message, is_reserved};

/// Characters that are escaped in CloudEvents attributes in HTTP headers, in addition to non-ASCII characters.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');
/// Event headers that are not sent. They belong to the connection, describe the body, or identify the sender to the receiver; the emitter of an event
/// must not choose them. A name that ends with `-` matches every name with this prefix.
const RESERVED: &[&str] = &[
    "webhook-",
    "proxy-",
    "authorization",
    "cookie",
    "cookie2",
    "set-cookie",
    "api-key",
    "apikey",
    "token",
    "x-access-token",
    "x-api-token",
    "x-token",
    "x-jwt-",
    "x-vault-",
    "client-cert",
    "ssl-client-",
    "x-client-cert",
    "x-ssl-",
    "x-user",
    "x-authenticated-",
    "x-consumer-",
    "x-goog-",
    "x-ms-client-",
    "x-appengine-",
    "tailscale-",
    "fastly-client-",
    "x-cluster-client-",
    "x-custom-ip-",
    "x-forwarded",
    "forwarded",
    "x-forwarded-",
    "via",
    "cf-",
    "remote-",
    "true-client-ip",
    "x-amzn-",
    "x-api-key",
    "x-auth-",
    "x-client-ip",
    "x-envoy-",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-",
    "x-real-ip",
    "x-remote-",
    "x-rewrite-",
    "host",
    "connection",
    "keep-alive",
    "te",
    "http2-settings",
    "max-forwards",
    "proxy",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "content-length",
    "content-encoding",
    "user-agent",
];

/// Returns the headers of an event, or why the event cannot be represented.
pub(super) fn headers(event: &Event, source: &str, signer: &Signer) -> Result<HeaderMap, String> {
    let message = Message::new(event, source);
    let mut headers = HeaderMap::new();
    // The custom headers come first, so that none of them replaces a standard one.
    for (name, value) in message.own_headers(RESERVED) {
        // CGI and similar interfaces map both spellings to one name.
        if is_reserved(&name.replace(['_', '.'], "-"), RESERVED) {
            continue;
        }
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
    let known = HeaderName::try_from(name).map_err(|_| format!("{name:?} is not a valid header name"))?;
    let value = HeaderValue::from_bytes(value.as_bytes());
    headers
        .insert(known, value.map_err(|_| format!("the value of the header {name:?} is not valid in HTTP"))?);
    Ok(())
}

/// Returns seconds since 1970. Receivers reject old signatures.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use milepost_core::event::Aggregate;
    use milepost_core::ident::EventId;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn no_event_chooses_who_a_receiver_takes_for_the_sender() {
        let reserved = [
            "Authorization",
            "cookie",
            "X-Forwarded-For",
            "X_Forwarded_Host",
            "X.Forwarded.Proto",
            "X-Real-IP",
            "Remote-User",
            "X-MS-Client-Principal",
            "X-Cluster-Client-IP",
            "Client-Cert",
            "Api-Key",
            "Proxy",
        ];
        let names = reserved.iter().chain(&["x-tenant", "viaduct", "tokens"]);
        let event = Event {
            id: EventId::new(),
            aggregate: Aggregate::new("order", "17"),
            sequence: 3,
            event_type: "order.paid".to_owned(),
            payload: RawValue::NULL.to_owned(),
            headers: names.map(|&name| (name.to_owned(), "a".to_owned())).collect(),
            emitted_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        let signer = Signer::new(&["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".into()]).unwrap();
        let sent = headers(&event, "shop", &signer).unwrap();
        for name in reserved {
            assert!(!sent.contains_key(name), "{name}");
        }
        assert!(
            sent.contains_key("x-tenant") && sent.contains_key("viaduct") && sent.contains_key("tokens"),
            "{sent:?}"
        );
    }
}
