//! Tests of inboxes: consumers, gaps and dead letters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::Database;
use milepost_testkit::inbox::{Desk, take_in};
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_and_dead_letters_are_dealt_with_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    gaps_and_dead_letters_are_dealt_with(Desk::sqlite(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_and_dead_letters_are_dealt_with_on_postgres() {
    let (_database, store) = Database::with_store().await;
    gaps_and_dead_letters_are_dealt_with(Desk::postgres(store, false).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_are_read_in_pages_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    gaps_are_read_in_pages(Desk::sqlite(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_are_read_in_pages_on_postgres() {
    let (_database, store) = Database::with_store().await;
    gaps_are_read_in_pages(Desk::postgres(store, false).await).await;
}

async fn gaps_are_read_in_pages(desk: Desk) {
    let place = Place::serve(desk.store.clone()).await;
    // Events of one transaction have the same time.
    let mut tx = desk.begin().await;
    for order in 0..5 {
        for consumer in ["billing", "shipping"] {
            take_in(tx.as_mut(), consumer, &event_of(&order.to_string(), 2)).await;
        }
    }
    tx.commit().await;
    for order in 5..8 {
        desk.take("billing", &event_of(&order.to_string(), 2)).await;
    }
    place.check_pages("/v1/gaps?", 3, 13).await;
    place.check_pages("/v1/gaps?consumer=billing&", 3, 8).await;
    place.check_pages("/v1/gaps?consumer=shipping&", 1, 5).await;
    let bad = place.get("/v1/gaps?cursor=x").await;
    assert_eq!((bad.code(), bad.at()), ("invalid_parameter", "query cursor"));
    let page = place.page("/dead-letters").await.1;
    assert!(page.contains("shipping") && !page.contains(">More</a>"), "all rows fit: {page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_large_dead_letters_end_early_and_leave_none_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let desk = Desk::sqlite(store);
    let place = Place::serve(desk.store.clone()).await;
    let wants = json!({"gap_wait_ms": 0, "parked_max": 100});
    assert_eq!(place.ask(Method::PUT, "/v1/consumers/billing", wants).await.status, StatusCode::NO_CONTENT);
    // The first event is missing, so all others become dead letters.
    for sequence in 2..14 {
        let payload = RawValue::from_string(format!("\"{}\"", "x".repeat(900_000))).unwrap();
        desk.take("billing", &Event { payload, ..event(sequence) }).await;
    }
    desk.store.give_up_gaps(None, 100).await.unwrap();
    let (mut sizes, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = place.get(&format!("/v1/dead-letters?limit=1000{cursor}")).await.body;
        sizes.push(page["items"].as_array().unwrap().len());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(sizes.iter().sum::<usize>(), 12, "{sizes:?}");
    assert!(sizes.len() > 1 && sizes.iter().all(|&rows| rows <= 8), "{sizes:?}");
}

fn event(sequence: i64) -> Event {
    event_of("1", sequence)
}

fn event_of(order: &str, sequence: i64) -> Event {
    Event {
        id: EventId::new(),
        aggregate: Aggregate::new("order", order),
        sequence,
        event_type: "order.paid".to_owned(),
        payload: RawValue::from_string("{}".to_owned()).unwrap(),
        headers: BTreeMap::new(),
        emitted_at: Timestamp::now(),
    }
}

async fn gaps_and_dead_letters_are_dealt_with(desk: Desk) {
    let place = Place::serve(desk.store.clone()).await;
    // Without a wait, a gap is dead-lettered at the next check.
    let wants = json!({"gap_wait_ms": 0, "parked_max": 10});
    assert_eq!(place.ask(Method::PUT, "/v1/consumers/billing", wants).await.status, StatusCode::NO_CONTENT);
    for sequence in [1, 3, 4, 5] {
        desk.take("billing", &event(sequence)).await;
    }
    let consumers = place.ask(Method::GET, "/v1/consumers", Value::Null).await.body;
    assert_eq!((&consumers[0]["name"], &consumers[0]["gap_wait_ms"]), (&json!("billing"), &json!(0)));
    assert_eq!((&consumers[0]["parked"], &consumers[0]["gap_policy"]), (&json!(3), &json!("dead_letter")));
    let told = async || place.page("/").await.1.contains("3 events wait in the inbox of billing");
    wait::until("the alert for waiting events is shown", told).await;
    let gaps = place.ask(Method::GET, "/v1/gaps?consumer=billing", Value::Null).await.body;
    assert_eq!((&gaps["items"][0]["missing"], &gaps["items"][0]["parked"]), (&json!(2), &json!(3)));
    desk.store.give_up_gaps(None, 100).await.unwrap();
    dead_letters_are_dealt_with(&place).await;
}

/// Tests the dead letters of events 3, 4 and 5.
async fn dead_letters_are_dealt_with(place: &Place) {
    let page = place.ask(Method::GET, "/v1/dead-letters?consumer=billing&limit=2", Value::Null).await.body;
    assert_eq!(
        (&page["items"][0]["sequences"], &page["items"][0]["reason"]),
        (&json!([5, 5]), &json!("gap"))
    );
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = place.ask(Method::GET, &format!("/v1/dead-letters?cursor={cursor}"), Value::Null).await.body;
    assert_eq!((&rest["items"][0]["sequences"], rest.get("next_cursor")), (&json!([3, 3]), None));
    let [five, four, three] =
        [&page["items"][0]["id"], &page["items"][1]["id"], &rest["items"][0]["id"]].map(Clone::clone);
    let operate = |operation: &str, ids: Value| {
        place.ask(Method::POST, "/v1/dead-letters/operate", json!({"operation": operation, "ids": ids}))
    };
    assert_eq!(operate("drop", json!([five, five])).await.body, json!({"letters": 1}));
    assert_eq!(operate("retry", json!([four])).await.body, json!({"letters": 1}));
    let absent = operate("retry", json!([i64::MAX])).await;
    assert_eq!((absent.status, absent.code()), (StatusCode::NOT_FOUND, "no_such_letter"));
    let expect = json!({"aggregate_type": "order", "aggregate_id": "1", "from_seq": 4});
    let expected = place.ask(Method::POST, "/v1/consumers/billing/expect", expect.clone()).await;
    assert_eq!(expected.body, json!({"changed": true}));
    let again = place.ask(Method::POST, "/v1/consumers/billing/expect", expect).await;
    assert_eq!(again.body, json!({"changed": false}), "the position never moves back");
    let past = operate("retry", json!([three])).await;
    assert_eq!((past.status, past.code()), (StatusCode::CONFLICT, "inbox_refused"), "{past:?}");
    assert_eq!(operate("drop", json!([])).await.code(), "too_many");
    assert_eq!(operate("drop", (0..2_000).collect::<Vec<i64>>().into()).await.code(), "too_many");
}

pub(crate) async fn what_cannot_be_said_of_an_inbox_is_refused(place: Place) {
    for (path, body) in [
        ("/v1/consumers/c", json!({"parked_max": 0})),
        ("/v1/consumers/c", json!({"gap_wait_ms": u64::MAX})),
        ("/v1/consumers/c", json!({"gap_policy": "hope"})),
        ("/v1/consumers/%07", json!({})),
    ] {
        let answer = place.ask(Method::PUT, path, body.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {answer:?}");
    }
    for body in [
        json!({"aggregate_type": "a", "aggregate_id": "1", "from_seq": 0}),
        json!({"aggregate_type": "a", "aggregate_id": "\u{0}", "from_seq": 1}),
        json!({"aggregate_type": "", "aggregate_id": "1", "from_seq": 1}),
    ] {
        let answer = place.ask(Method::POST, "/v1/consumers/c/expect", body.clone()).await;
        assert_eq!(answer.code(), "invalid_inbox", "{body}: {answer:?}");
    }
    for path in [
        "/v1/gaps?limit=0",
        "/v1/gaps?consumer=%00",
        "/v1/gaps?cursor=x",
        "/v1/dead-letters?limit=1000000",
        "/v1/dead-letters?cursor=x",
    ] {
        assert_eq!(place.ask(Method::GET, path, Value::Null).await.code(), "invalid_parameter", "{path}");
    }
    assert_eq!(place.get("/v1/consumers").await.body, json!([]));
}
