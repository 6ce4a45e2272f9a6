//! Tests of `milepost inbox`: events that consumers received, that wait, and that were dead-lettered.

use std::time::Duration;

use crate::support::{Place, on_each_store};
use milepost_conformance::inbox::event;
use milepost_core::event::Event;
use milepost_core::ident::EventId;
use serde_json::{Value, json};

on_each_store! {
    consumers_are_listed_with_what_they_want_and_took_in,
    settings_that_are_not_given_stay,
    a_consumer_that_is_told_to_go_on_takes_in_what_waits,
    dead_letters_are_listed_retried_and_dropped,
    ids_that_are_old_are_forgotten,
    what_cannot_be_done_is_refused_with_what_to_do,
}

fn inbox(place: &Place, args: &[&str]) -> Value {
    place.run(&[&["inbox"], args, &["--json"]].concat()).json()
}

/// Creates a consumer `billing` that received these events of an order.
fn with_events(place: &Place, sequences: &[i64]) {
    place.run(&["migrate"]).ok();
    receive(place, "billing", sequences);
}

fn receive(place: &Place, consumer: &'static str, sequences: &[i64]) {
    let events: Vec<Event> = sequences.iter().map(|&sequence| event("17", sequence)).collect();
    in_transaction(place, Taken::Received(consumer, events));
}

/// The call of a consumer in a transaction.
enum Taken {
    Received(&'static str, Vec<Event>),
    Once(&'static str, EventId),
    GivenUp,
}

fn in_transaction(place: &Place, taken: Taken) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let Some(path) = place.store.strip_prefix("sqlite:") else {
            return on_postgres(&place.store, taken).await;
        };
        let store =
            milepost_sqlite::SqliteStore::open(path, milepost_sqlite::SqliteOptions::default()).unwrap();
        if let Taken::GivenUp = taken {
            return give_up(&store).await;
        }
        let done = store.transaction(move |tx| match &taken {
            Taken::Received(consumer, events) => {
                events.iter().try_for_each(|event| milepost_sqlite::receive(tx, consumer, event).map(drop))
            }
            Taken::Once(consumer, id) => milepost_sqlite::once(tx, consumer, *id).map(drop),
            Taken::GivenUp => Ok(()),
        });
        done.await.unwrap();
    });
}

async fn on_postgres(url: &str, taken: Taken) {
    use sqlx::Connection;
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    match taken {
        Taken::Received(consumer, events) => {
            for event in events {
                milepost_postgres::receive(&mut connection, consumer, &event).await.unwrap();
            }
        }
        Taken::Once(consumer, id) => {
            milepost_postgres::once(&mut connection, consumer, id).await.unwrap();
        }
        Taken::GivenUp => {
            let options = milepost_postgres::PostgresOptions::default();
            give_up(&milepost_postgres::PostgresStore::connect(url, options).await.unwrap()).await;
        }
    }
}

async fn give_up(store: &dyn milepost_core::port::InboxStore) {
    assert!(store.give_up_gaps(None, 100).await.unwrap().letters > 0);
}

/// Dead-letters the waiting events, by a consumer whose gap wait is zero.
fn impatiently(place: &Place, sequences: &[i64]) {
    place.run(&["migrate"]).ok();
    inbox(place, &["set", "billing", "--gap-wait", "0s"]);
    receive(place, "billing", sequences);
    in_transaction(place, Taken::GivenUp);
}

fn consumers_are_listed_with_what_they_want_and_took_in(place: Place) {
    let place = place.emptied();
    assert!(place.run(&["inbox", "list"]).err.contains("milepost migrate"), "there is no store");
    with_events(&place, &[1, 1, 3, 4]);
    let listed = inbox(&place, &["list"]);
    let view = &listed[0];
    assert_eq!((&view["name"], &view["gap_policy"]), (&json!("billing"), &json!("dead_letter")));
    let counts = ["aggregates", "parked", "dead", "duplicates"].map(|of| view[of].as_u64().unwrap());
    assert_eq!(counts, [1, 2, 0, 1]);
    let ran = place.run(&["inbox", "list"]).ok();
    assert!(
        ran.out.contains("DUPLICATES") && ran.out.contains("10m") && ran.out.contains("dead_letter"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("milepost inbox gaps"), "{}", ran.err);
    let gaps = inbox(&place, &["gaps", "billing"]);
    assert_eq!(
        (&gaps[0]["missing"], &gaps[0]["parked"], &gaps[0]["aggregate_id"]),
        (&json!(2), &json!(2), &json!("17"))
    );
    let shown = place.run(&["inbox", "gaps"]).ok().out;
    assert!(shown.contains("MISSING") && shown.contains("order/17"), "{shown}");
}

fn settings_that_are_not_given_stay(place: Place) {
    place.run(&["migrate"]).ok();
    let first = place.run(&["inbox", "set", "billing", "--gap-wait", "1m", "--on-gap", "skip_gap"]).ok();
    assert!(first.out.contains("1m") && first.out.contains("skip_gap"), "{}", first.out);
    assert!(first.err.contains("no event has been processed as billing yet"), "{}", first.err);
    inbox(&place, &["set", "billing", "--parked-max", "5", "--begins-anywhere", "true"]);
    let view = &inbox(&place, &["list"])[0];
    let stands =
        (&view["gap_wait"]["secs"], &view["gap_policy"], &view["parked_max"], &view["begins_anywhere"]);
    assert_eq!(stands, (&json!(60), &json!("skip_gap"), &json!(5), &json!(true)));
}

fn a_consumer_that_is_told_to_go_on_takes_in_what_waits(place: Place) {
    with_events(&place, &[1, 4, 5]);
    let told = place.run(&["inbox", "expect", "billing", "order/17", "4"]).ok().out;
    assert!(told.contains("billing processes events of order/17 from 4 on"), "{told}");
    assert_eq!(inbox(&place, &["gaps"]), json!([]), "nothing is missing any more");
    let told = place.run(&["inbox", "gaps"]).ok().err;
    assert!(told.contains("can be processed now: the consumer must call next_parked"), "{told}");
    assert_eq!(inbox(&place, &["expect", "billing", "order/17", "2"]), json!({ "changed": false }));
    let back = place.run(&["inbox", "expect", "billing", "order/17", "2"]);
    assert!(back.status == 1 && back.err.contains("never move back"), "{}", back.err);
}

fn dead_letters_are_listed_retried_and_dropped(place: Place) {
    impatiently(&place, &[1, 3, 4, 6]);
    let dead = inbox(&place, &["dead", "billing"]);
    let ids: Vec<String> = dead.as_array().unwrap().iter().map(|letter| letter["id"].to_string()).collect();
    assert_eq!(ids.len(), 3, "{dead}");
    assert_eq!((&dead[0]["reason"], &dead[0]["sequences"]), (&json!("gap"), &json!([6, 6])));
    let shown = place.run(&["inbox", "dead", "billing", "--limit", "1"]).ok().out;
    assert!(shown.contains("REASON") && shown.contains("order/17") && shown.contains("gap"), "{shown}");

    // A mistyped id cannot affect dead letters of another consumer.
    receive(&place, "mailer", &[1]);
    let slip = place.run(&["inbox", "dead", "mailer", "--drop", &ids[0]]);
    assert!(slip.status == 1 && slip.err.contains("mailer has no dead letter"), "{}", slip.err);

    let words = place.run(&["inbox", "dead", "billing", "--retry", &ids[1], &ids[2]]).ok().out;
    assert!(words.contains("dead letters of billing that wait again: 2"), "{words}");
    assert_eq!(inbox(&place, &["dead", "billing", "--drop", &ids[0]]), json!({ "dropped": 1 }));
    assert_eq!(inbox(&place, &["dead", "billing"]), json!([]));
    assert_eq!(inbox(&place, &["list"])[0]["parked"], json!(2));
    let who = place.tamper("select cast(count(*) as text) from milepost.audit where who like '%@%' and what in ('inbox.retry', 'inbox.drop')");
    assert!(who == "2", "both are in the audit: {who}");
}

fn ids_that_are_old_are_forgotten(place: Place) {
    place.run(&["migrate"]).ok();
    for _ in 0..3 {
        in_transaction(&place, Taken::Once("mailer", EventId::new()));
    }
    assert_eq!(inbox(&place, &["prune"]), json!({ "ids": 0 }), "they are too recent");
    std::thread::sleep(Duration::from_millis(5));
    let told = place.run(&["inbox", "prune", "--keep", "0s"]).ok().out;
    assert!(told.starts_with("3 ids of events"), "{told}");
    assert_eq!(place.tamper("select cast(count(*) as text) from milepost.processed_event"), "0");
}

fn what_cannot_be_done_is_refused_with_what_to_do(place: Place) {
    with_events(&place, &[1]);
    let unknown = place.run(&["inbox", "dead", "biling"]);
    let words = "there is no consumer \"biling\"; there are billing";
    assert!(unknown.status == 1 && unknown.err.contains(words), "{}", unknown.err);
    for args in [
        &["inbox", "set", "billing"] as &[&str],
        &["inbox", "set", "billing", "--on-gap", "wait"],
        &["inbox", "set", "billing", "--parked-max", "0"],
        &["inbox", "expect", "billing", "17", "4"],
        &["inbox", "expect", "billing", "order/17", "0"],
        &["inbox", "dead", "billing", "--retry", "1", "--drop", "2"],
    ] {
        assert_eq!(place.run(args).status, 2, "{args:?}");
    }
    let none = place.run(&["inbox", "dead", "billing", "--retry", "9"]);
    assert!(none.status == 1 && none.err.contains("lists its dead letters"), "{}", none.err);
}
