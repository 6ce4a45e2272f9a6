//! Tests of the limits for events: rejected and accepted values.

use milepost_core::event::{HEADER_BYTES_MAX, HEADERS_MAX, NewEvent, SEQUENCE_MAX};
use milepost_core::job::{KEY_BYTES_MAX, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX};

use super::{Log, invalid, of, with};

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn named(kind: &str, id: &str, event_type: &str) -> NewEvent {
    let mut event = of(id);
    event.aggregate.kind = kind.to_owned();
    event.event_type = event_type.to_owned();
    event
}

fn with_headers(count: usize) -> NewEvent {
    (0..count).fold(of("1"), |event, n| event.header(format!("h-{n}"), "1"))
}

pub async fn what_is_wrong_is_said_with_its_place(log: Log) {
    let cases = [
        (named("", "1", "t"), "the type of the aggregate \"\" is invalid: it is empty"),
        (named(&"k".repeat(201), "1", "t"), "it is too long"),
        (named("milepost.job.mail", "1", "t"), "kept for state changes"),
        (named("k", "", "t"), "the id of the aggregate \"\" is invalid"),
        (named("k", &"i".repeat(KEY_BYTES_MAX + 1), "t"), "it is too long"),
        (named("k", "1", ""), "the type of the event \"\" is invalid"),
        (named("k", "1\n2", "t"), "it has control characters"),
        (named("k\u{202e}", "1", "t"), "it has characters that change the direction of text"),
        (named("k", "1", ".."), "programs remove it from URLs"),
        (of("1").sequence(0), "the sequence 0 is not a number from 1 to 9000000000000000000"),
        (of("1").sequence(i64::MAX), "the sequence 9223372036854775807 is not a number"),
        (of("1").sequence(-7), "the sequence -7 is not a number from 1 to"),
        (of("1").header("a b", "1"), "the header \"a b\" has a name that brokers refuse"),
        (of("1").header("a", "1\r\n2"), "the header \"a\" has control characters"),
        (of("1").header("Trace-Id", "1").header("trace-id", "2"), "the header \"trace-id\" is there twice"),
        (with_headers(HEADERS_MAX + 1), "51 headers"),
        (of("1").header("a", "1".repeat(HEADER_BYTES_MAX)), "8193 bytes are too much"),
        (with("1", &format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX))), "the limit is 1048576"),
        (with("1", &nested(PAYLOAD_DEPTH_MAX + 1)), "nested 121 levels deep"),
        (with("1", r#""\u0000""#), "NUL"),
        (with("1", r#"{"a": "\ud800"}"#), "hex escape"),
        (with("1", "[1e400]"), "number out of range"),
        (with("1", r#"{"\u0024serde_json::private::RawValue": "1"}"#), "which is reserved"),
    ];
    for (event, words) in cases {
        let refused = invalid(log.store.emit_many(&[of("1"), event]).await);
        assert_eq!(refused.0, 1, "{refused:?}");
        assert!(refused.1.to_string().contains(words), "not {words:?}: {}", refused.1);
    }
    assert!(log.all().await.is_empty());
}

pub async fn the_number_after_the_largest_is_refused(log: Log) {
    let last = of("1").sequence(SEQUENCE_MAX).allow_gap();
    log.emit(&last).await;
    for call in [vec![of("1")], vec![of("2"), of("1")], vec![of("1"), of("1")]] {
        let (index, refused) = invalid(log.store.emit_many(&call).await);
        assert_eq!(index, call.iter().position(|event| event.aggregate == last.aggregate).unwrap());
        assert!(refused.to_string().contains("has no sequence left"), "{refused}");
    }
    assert_eq!(log.all().await.len(), 1);
}

pub async fn one_bad_event_refuses_the_whole_call(log: Log) {
    log.emit(&of("1")).await;
    let call = [of("1"), of("2"), of("1").sequence(1), of("3")];
    assert_eq!(invalid(log.store.emit_many(&call).await).0, 2);
    assert_eq!(log.all().await.len(), 1);
    assert_eq!((log.emit(&of("1")).await, log.emit(&of("2")).await), (2, 1), "no sequence was used");
}

pub async fn what_is_at_the_limits_is_taken(log: Log) {
    let largest = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let events = [
        named(&"k".repeat(200), &"i".repeat(KEY_BYTES_MAX), &"t".repeat(200)),
        with_headers(HEADERS_MAX),
        of("1").header("a", "1".repeat(HEADER_BYTES_MAX - 1)),
        with("1", &nested(PAYLOAD_DEPTH_MAX)),
        with("1", &format!("\"{}\"", "[".repeat(500))),
        with("1", &format!("[{}]", vec!["[]"; 500].join(","))),
        with("1", r#""\\u0000""#),
        with("1", r#"["\ud83d\ude00", "\\ud800", 1e300, 0.5e-20]"#),
        of("last").sequence(SEQUENCE_MAX),
        with("1", &largest),
    ];
    for event in events {
        log.emit(&event).await;
    }
}

pub async fn an_event_comes_back_as_it_was_written(log: Log) {
    let text = r#"{ "z": 1.0, "a":1e2,"z2": 12345678901234567890.10, "u": "é\u00e9 \" \\", "n":null }"#;
    let event = with("größe/🦀", text).header("traceparent", "00-ab \"quoted\" ü").header("b", "");
    log.emit(&event).await;
    log.emit(&of("1")).await;
    let all = log.all().await;
    let found = &all[0].event;
    assert_eq!(found.payload.get(), text, "the payload is unchanged");
    assert_eq!((found.id, &found.aggregate, &found.headers), (event.id, &event.aggregate, &event.headers));
    assert_eq!((found.event_type.as_str(), found.sequence), ("order.changed", 1));
    assert!(all[1].event.headers.is_empty());
    let shown = serde_json::to_value(&all[0]).unwrap();
    assert_eq!(shown["aggregate_id"], "größe/🦀");
    assert_eq!(shown["payload"]["a"], 100.0);
}
