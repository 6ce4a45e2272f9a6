//! Tests of events: emit, reads, and operations on parked and dead events.

use std::time::Duration;

use milepost_core::event::{Begin, Event, Failure, Outcome, PageSize, Undelivered};
use milepost_core::ident::EventId;
use milepost_core::port::LogReader;
use milepost_testkit::relay;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::place::Place;

pub(crate) async fn events_are_emitted_and_listed(place: Place) {
    let event = |id: &str, n: u32| json!({"aggregate_type": "order", "aggregate_id": id, "event_type": "order.paid", "payload": {"n": n}, "headers": {"tenant": "acme"}});
    let body = json!({"events": [event("1", 1), event("2", 2), event("1", 3)]});
    let emit =
        || place.send(place.request(Method::POST, "/v1/events").header("Idempotency-Key", "e-1").json(&body));
    let first = emit().await;
    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    let seqs: Vec<i64> = first.body["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["aggregate_seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 1, 2]);
    let again = emit().await;
    assert_eq!(again.body["events"][2]["duplicate"], true);
    assert_eq!(again.body["events"][2]["event_id"], first.body["events"][2]["event_id"]);
    let listed = place.get("/v1/events?aggregate_type=order&aggregate_id=1&limit=1").await.body;
    assert_eq!(listed["items"][0]["payload"]["n"], 3);
    let cursor = listed["next_cursor"].as_str().unwrap();
    let rest =
        place.get(&format!("/v1/events?aggregate_type=order&aggregate_id=1&cursor={cursor}")).await.body;
    assert_eq!((&rest["items"][0]["payload"]["n"], rest["items"].as_array().unwrap().len()), (&json!(1), 1));
    let other = json!({"events": [{"aggregate_type": "order", "aggregate_id": "9", "event_type": "x", "event_id": first.body["events"][0]["event_id"]}]});
    let other = place.post("/v1/events", &other).await;
    assert_eq!(
        (other.status, other.code(), other.at()),
        (StatusCode::CONFLICT, "event_id_taken", "events[0]")
    );
}

pub(crate) async fn events_that_cannot_be_are_refused(place: Place) {
    let good = json!({"aggregate_type": "a", "aggregate_id": "1", "event_type": "t", "aggregate_seq": 5});
    assert_eq!(place.post("/v1/events", &json!({"events": [good]})).await.status, StatusCode::CREATED);
    for (bad, at) in [
        (json!({"aggregate_type": "a", "aggregate_id": "", "event_type": "t"}), "events[1]"),
        (json!({"aggregate_type": "milepost.job.k", "aggregate_id": "1", "event_type": "t"}), "events[1]"),
        (
            json!({"aggregate_type": "a", "aggregate_id": "1", "event_type": "t", "aggregate_seq": 9}),
            "events[1]",
        ),
        (
            json!({"aggregate_type": "a", "aggregate_id": "1", "event_type": "t", "headers": {"a b": "c"}}),
            "events[1]",
        ),
    ] {
        let good = json!({"aggregate_type": "b", "aggregate_id": "1", "event_type": "t"});
        let answer = place.post("/v1/events", &json!({"events": [good, bad]})).await;
        assert_eq!(
            (answer.status, answer.code(), answer.at()),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid_event", at),
            "{bad}"
        );
    }
    assert_eq!(place.get("/v1/events").await.body["items"].as_array().unwrap().len(), 1, "all or none");
    assert_eq!(place.get("/v1/events?aggregate_id=1").await.at(), "query aggregate_id");
}

pub(crate) async fn what_is_parked_and_given_up_is_dealt_with(place: Place) {
    for id in ["1", "2"] {
        let event = json!({"aggregate_type": "order", "aggregate_id": id, "event_type": "order.paid"});
        place.post("/v1/events", &json!({"events": [event]})).await;
    }
    let (_, mut reader) = relay::reader(place.store.as_ref(), "orders", Duration::from_secs(60)).await;
    let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
    let failures = page
        .events
        .iter()
        .zip([Undelivered::Halt, Undelivered::DeadLetter])
        .map(|(event, then)| Failure { event: event.id, deliveries: 1, why: "no".to_owned(), then });
    reader.commit(&Outcome { failures: failures.collect(), ..Outcome::default() }).await.unwrap();
    let parked = place.get("/v1/parked?subscription=orders").await.body;
    let operate = json!({"subscription": "orders", "aggregate_type": "order", "aggregate_id": parked["items"][0]["aggregate_id"], "operation": "edit"});
    assert_eq!(place.post("/v1/parked/operate", &operate).await.at(), "payload");
    let mut edit = operate.clone();
    edit["payload"] = json!({"mended": true});
    edit["event_id"] = json!(EventId::new());
    assert_eq!(place.post("/v1/parked/operate", &edit).await.code(), "relay_refused");
    edit["event_id"] = parked["items"][0]["event_id"].clone();
    assert_eq!(place.post("/v1/parked/operate", &edit).await.status, StatusCode::NO_CONTENT);
    assert_eq!(place.get("/v1/parked").await.body["items"][0]["payload"], json!({"mended": true}));
    let mut absent = edit.clone();
    absent["aggregate_id"] = json!("99");
    assert_eq!(place.post("/v1/parked/operate", &absent).await.code(), "relay_refused");
    let dead = place.get("/v1/dead-events").await.body;
    let forget =
        json!({"subscription": "orders", "event_id": dead["items"][0]["event_id"], "operation": "drop"});
    assert_eq!(place.post("/v1/dead-events/operate", &forget).await.status, StatusCode::NO_CONTENT);
    assert_eq!(place.get("/v1/dead-events").await.body, json!({"items": []}));
}

pub(crate) async fn all_parked_aggregates_of_a_subscription_are_retried(place: Place) {
    emit_orders(&place, 60).await;
    for subscription in ["mail", "orders"] {
        fail(&place, subscription, 30).await;
    }
    let retry =
        async |name: &str| place.post(&format!("/v1/subscriptions/{name}/retry-parked"), &json!({})).await;
    assert_eq!(retry("orders").await.body, json!({"retried": 30, "unchanged": 0}));
    let halted = async |name: &str| {
        let parked = place.store.parked(Some(name), None, 100).await.unwrap();
        parked.iter().filter(|view| view.next_delivery_at.is_none()).count()
    };
    assert_eq!((halted("orders").await, halted("mail").await), (0, 30));
    let unknown = retry("gone").await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (StatusCode::NOT_FOUND, "no_such_subscription"),
        "{unknown:?}"
    );
}

/// Makes a subscription halt `each` events and dead-letter as many, all of different aggregates.
pub(crate) async fn fail(place: &Place, subscription: &str, each: usize) {
    fail_as(place, subscription, each, Undelivered::Halt).await;
}

/// Makes this happen to `each` events of a subscription, and dead-letters as many, all of different aggregates.
pub(crate) async fn fail_as(place: &Place, subscription: &str, each: usize, first: Undelivered) {
    let (_, mut reader) = relay::reader(place.store.as_ref(), subscription, Duration::from_secs(60)).await;
    let page = reader.page(PageSize { events_max: 1000, bytes_max: 1_000_000 }).await.unwrap();
    assert_eq!(page.events.len(), 2 * each);
    let failure = |(n, event): (usize, &Event)| {
        let then = if n < each { first } else { Undelivered::DeadLetter };
        Failure { event: event.id, deliveries: 1, why: "no".to_owned(), then }
    };
    let failures = page.events.iter().enumerate().map(failure).collect();
    reader.commit(&Outcome { failures, ..Outcome::default() }).await.unwrap();
}

/// Emits an event for each of `orders` orders.
pub(crate) async fn emit_orders(place: &Place, orders: usize) {
    let event = |n: usize| json!({"aggregate_type": "order", "aggregate_id": n.to_string(), "event_type": "order.paid"});
    let events: Vec<Value> = (0..orders).map(event).collect();
    assert_eq!(place.post("/v1/events", &json!({ "events": events })).await.status, StatusCode::CREATED);
}

pub(crate) async fn what_is_parked_and_given_up_is_read_in_pages(place: Place) {
    emit_orders(&place, 14).await;
    for subscription in ["mail", "orders"] {
        fail(&place, subscription, 7).await;
    }
    for list in ["/v1/parked", "/v1/dead-events"] {
        for (only, rows) in [("", 14), ("subscription=orders&", 7)] {
            place.check_pages(&format!("{list}?{only}"), 3, rows).await;
        }
        let bad = place.get(&format!("{list}?cursor=x")).await;
        assert_eq!((bad.code(), bad.at()), ("invalid_parameter", "query cursor"));
    }
    let cursor = place.get("/v1/parked?limit=1").await.body["next_cursor"].clone();
    let other = place.get(&format!("/v1/dead-events?cursor={}", cursor.as_str().unwrap())).await;
    assert_eq!(
        (other.code(), other.at()),
        ("invalid_parameter", "query cursor"),
        "the cursor of another list"
    );
}

pub(crate) async fn a_subscription_is_paused_and_goes_on(place: Place) {
    place.store.subscribe("orders", Begin::Beginning).await.unwrap();
    let pause = |body| place.send(place.request(Method::PUT, "/v1/subscriptions/orders").json(&body));
    assert_eq!(pause(json!({"paused": true})).await.at(), "reason");
    assert_eq!(
        pause(json!({"paused": true, "reason": "the broker moves"})).await.body,
        json!({"paused": true})
    );
    let shown = place.get("/v1/subscriptions").await.body;
    assert_eq!((&shown[0]["paused_why"], &shown[0]["backlog"]), (&json!("the broker moves"), &json!(0)));
    assert_eq!(pause(json!({"paused": false})).await.body, json!({"paused": false}));
    let absent = place.request(Method::PUT, "/v1/subscriptions/none").json(&json!({"paused": false}));
    assert_eq!(place.send(absent).await.code(), "no_such_subscription");
}

/// Advances the reader past all events.
async fn pass_all(reader: &mut dyn LogReader) {
    loop {
        let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
        if reader.pass() {
            reader.commit(&Outcome::default()).await.unwrap();
        }
        if page.events.is_empty() {
            break;
        }
    }
}

pub(crate) async fn what_was_published_is_published_again(place: Place) {
    let event = json!({"aggregate_type": "order", "aggregate_id": "1", "event_type": "order.paid"});
    place.post("/v1/events", &json!({"events": [event, event]})).await;
    let path = "/v1/subscriptions/orders/replay";
    let absent = place.ask(Method::POST, path, json!({"since": "2020-01-01T00:00:00Z"})).await;
    assert_eq!((absent.status, absent.code()), (StatusCode::NOT_FOUND, "no_such_subscription"));
    let (publisher, mut reader) =
        relay::reader(place.store.as_ref(), "orders", Duration::from_secs(60)).await;
    pass_all(reader.as_mut()).await;
    let published = place.ask(Method::DELETE, "/v1/subscriptions/orders", Value::Null).await;
    assert_eq!((published.status, published.code()), (StatusCode::CONFLICT, "relay_refused"));
    drop(reader);
    place.store.leave(&publisher).await.unwrap();
    let again = json!({"aggregate_type": "order", "aggregate_id": "1", "from_seq": 2});
    assert_eq!(place.ask(Method::POST, path, again).await.body, json!({"events": 1}));
    let since = place.ask(Method::POST, path, json!({"since": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(since.status, StatusCode::OK, "{since:?}");
    let none = json!({"aggregate_type": "order", "aggregate_id": "9"});
    assert_eq!(place.ask(Method::POST, path, none).await.code(), "no_such_aggregate");
    assert_eq!(place.ask(Method::POST, "/v1/events/reseed", Value::Null).await.status, StatusCode::OK);
    let kept = place.ask(Method::DELETE, "/v1/subscriptions/orders", Value::Null).await;
    assert_eq!(kept.at(), "query force", "the replayed events are parked: {kept:?}");
    let gone = place.ask(Method::DELETE, "/v1/subscriptions/orders?force=true", Value::Null).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let gone = place.ask(Method::DELETE, "/v1/subscriptions/orders?force=true", Value::Null).await;
    assert_eq!((gone.status, gone.code()), (StatusCode::NOT_FOUND, "no_such_subscription"));
}

pub(crate) async fn replays_that_cannot_be_are_refused(place: Place) {
    let path = "/v1/subscriptions/orders/replay";
    for (body, at) in [
        (json!({}), "since"),
        (json!({"aggregate_id": "1"}), "aggregate_id"),
        (json!({"aggregate_type": "a", "aggregate_id": "1", "from_seq": 0}), "from_seq"),
        (json!({"since": "2020-01-01T00:00:00Z", "from_seq": 1}), "from_seq"),
        (json!({"since": "2020-01-01T00:00:00Z", "aggregate_type": "a"}), "since"),
        (json!({"since": "yesterday"}), "since"),
    ] {
        let answer = place.ask(Method::POST, path, body.clone()).await;
        assert_eq!((answer.code(), answer.at()), ("invalid_body", at), "{body}");
    }
}
