//! Processing of events in the order of their sequence.

use milepost_core::event::{Aggregate, Event, SEQUENCE_MAX};
use milepost_core::inbox::{Consumer, InvalidInbox, Received};
use serde_json::value::RawValue;

use super::{APPLY, APPLY_AND_MORE, BILLING, PARKED, billing, event, order, refusal};
use milepost_testkit::inbox::Desk;

pub async fn events_are_applied_in_order_and_once(desk: Desk) {
    for sequence in 1..=3 {
        assert_eq!(desk.take(BILLING, &event("1", sequence)).await, APPLY);
    }
    for sequence in 1..=3 {
        assert_eq!(desk.take(BILLING, &event("1", sequence)).await, Received::Duplicate);
    }
    assert_eq!(desk.take(BILLING, &event("2", 1)).await, APPLY, "sequences are per aggregate");
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3]);
    let seen = desk.store.consumers().await.unwrap();
    assert_eq!((seen[0].aggregates, seen[0].duplicates, seen[0].parked), (2, 3, 0));
    assert_eq!(seen[0].consumer, billing());
}

pub async fn an_event_that_comes_too_early_waits_for_the_one_before_it(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY);
    for sequence in [5, 3, 4] {
        assert_eq!(desk.take(BILLING, &event("1", sequence)).await, PARKED);
    }
    let gaps = desk.store.gaps(None, None, 10).await.unwrap();
    assert_eq!((gaps.len(), gaps[0].missing, gaps[0].parked), (1, 2, 3));
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3, 4, 5]);
    assert!(desk.store.gaps(None, None, 10).await.unwrap().is_empty());
    assert_eq!(desk.take(BILLING, &event("1", 6)).await, APPLY, "no later event is parked");
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 0);
}

pub async fn an_event_that_waits_and_comes_again_is_applied_once(desk: Desk) {
    for _ in 0..2 {
        assert_eq!(desk.take(BILLING, &event("1", 2)).await, PARKED);
    }
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 1);
    // A consumer that does not process the parked events itself, and receives them again from its broker.
    let mut tx = desk.begin().await;
    assert_eq!(tx.receive(BILLING, &event("1", 1)).await.unwrap(), APPLY_AND_MORE);
    tx.effect(BILLING, &event("1", 1)).await;
    tx.commit().await;
    assert_eq!(desk.store.inbox_ready(BILLING, 10).await.unwrap(), [order("1")]);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2]);
    assert!(desk.drain(BILLING, &order("1")).await.is_empty());
    assert!(desk.store.inbox_ready(BILLING, 10).await.unwrap().is_empty());
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 0);
}

pub async fn an_aggregate_begins_with_its_first_event(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, PARKED);
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2]);
}

pub async fn a_consumer_may_begin_anywhere(desk: Desk) {
    desk.store.put_consumer(&Consumer { begins_anywhere: true, ..billing() }).await.unwrap();
    assert_eq!(desk.take(BILLING, &event("1", 7)).await, APPLY);
    assert_eq!(desk.take(BILLING, &event("1", 6)).await, Received::Duplicate);
    assert_eq!(desk.take(BILLING, &event("1", 9)).await, PARKED);
    assert_eq!(desk.take(BILLING, &event("1", 8)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [7, 8, 9]);
    // With an explicit start, the aggregate must begin there.
    assert!(desk.store.expect_from(BILLING, &order("2"), 1).await.unwrap());
    assert_eq!(desk.take(BILLING, &event("2", 3)).await, PARKED);
}

pub async fn what_is_rolled_back_neither_moves_on_nor_parks(desk: Desk) {
    desk.take(BILLING, &event("1", 1)).await;
    for sequence in [2, 4] {
        let mut tx = desk.begin().await;
        tx.receive(BILLING, &event("1", sequence)).await.unwrap();
        tx.roll_back().await;
    }
    assert!(desk.store.gaps(None, None, 10).await.unwrap().is_empty());
    desk.take(BILLING, &event("1", 3)).await;
    let mut tx = desk.begin().await;
    assert_eq!(tx.receive(BILLING, &event("1", 2)).await.unwrap(), APPLY_AND_MORE);
    assert_eq!(tx.next_parked(BILLING, &order("1")).await.unwrap().unwrap().sequence, 3);
    tx.roll_back().await;
    assert_eq!(
        desk.take(BILLING, &event("1", 2)).await,
        APPLY_AND_MORE,
        "the event is applied again, and more events follow"
    );
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3]);
}

pub async fn consumers_do_not_know_of_one_another(desk: Desk) {
    desk.take(BILLING, &event("1", 1)).await;
    assert_eq!(desk.take("shipping", &event("1", 2)).await, PARKED);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY);
    assert!(desk.drain(BILLING, &order("1")).await.is_empty());
    assert_eq!(desk.take("shipping", &event("1", 1)).await, APPLY_AND_MORE);
    let names: Vec<_> =
        desk.store.consumers().await.unwrap().into_iter().map(|seen| seen.consumer.name).collect();
    assert_eq!(names, [BILLING, "shipping"]);
}

pub async fn a_kept_event_comes_back_as_it_came(desk: Desk) {
    let payload = r#"{ "z": 1.0, "a":1e2, "long": 12345678901234567890.10, "u": "é\u00e9 \" \\" }"#;
    let sent = Event {
        payload: RawValue::from_string(payload.to_owned()).unwrap(),
        headers: [("traceparent".to_owned(), "00-ab \"quoted\" ü".to_owned())].into(),
        emitted_at: "2026-03-01T12:00:00.123Z".parse().unwrap(),
        ..event("größe/🦀", 2)
    };
    desk.take(BILLING, &sent).await;
    let mut tx = desk.begin().await;
    tx.receive(BILLING, &event("größe/🦀", 1)).await.unwrap();
    let found = tx.next_parked(BILLING, &sent.aggregate).await.unwrap().unwrap();
    tx.commit().await;
    assert_eq!(found.payload.get(), payload, "the payload is unchanged");
    assert_eq!((found.id, &found.aggregate, &found.headers), (sent.id, &sent.aggregate, &sent.headers));
    assert_eq!((found.sequence, found.emitted_at), (2, sent.emitted_at));
    assert_eq!(found.event_type, sent.event_type);
}

pub async fn a_consumer_that_joins_late_says_where_it_begins(desk: Desk) {
    assert!(desk.store.expect_from(BILLING, &order("1"), 10).await.unwrap());
    assert_eq!(desk.take(BILLING, &event("1", 9)).await, Received::Duplicate);
    assert_eq!(desk.take(BILLING, &event("1", 10)).await, APPLY);
    for lower in [1, 10, 11] {
        assert!(
            !desk.store.expect_from(BILLING, &order("1"), lower).await.unwrap(),
            "{lower} is not later than the checkpoint"
        );
    }
    assert_eq!(desk.take(BILLING, &event("1", 11)).await, APPLY);
    let mut tx = desk.begin().await;
    assert!(tx.expect_from(BILLING, &order("1"), 20).await.unwrap());
    tx.roll_back().await;
    assert_eq!(
        desk.take(BILLING, &event("1", 12)).await,
        APPLY,
        "it was part of the transaction that was rolled back"
    );
}

pub async fn beginning_later_drops_what_lies_before_and_lets_follow_what_waits(desk: Desk) {
    for sequence in [1, 3, 4, 6, 9] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    assert!(desk.store.expect_from(BILLING, &order("1"), 6).await.unwrap());
    assert_eq!(desk.store.inbox_ready(BILLING, 10).await.unwrap(), [order("1")]);
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 2);
    assert_eq!(desk.drain(BILLING, &order("1")).await, [6]);
    let gaps = desk.store.gaps(Some(BILLING), None, 10).await.unwrap();
    assert_eq!((gaps[0].missing, gaps[0].parked), (7, 1));
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, Received::Duplicate);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 6]);
}

pub async fn what_is_no_place_of_an_event_is_refused(desk: Desk) {
    let mut tx = desk.begin().await;
    assert!(refusal(tx.receive(BILLING, &event("1", 0)).await).to_string().contains("the sequence 0"));
    assert!(refusal(tx.receive("", &event("1", 1)).await).to_string().contains("name of the consumer"));
    assert!(refusal(tx.expect_from(BILLING, &order("1"), -3).await).to_string().contains("the sequence -3"));
    let beyond = "the sequence 9223372036854775807";
    assert!(refusal(tx.receive(BILLING, &event("1", i64::MAX)).await).to_string().contains(beyond));
    let last = event("1", SEQUENCE_MAX);
    assert!(tx.expect_from(BILLING, &order("1"), SEQUENCE_MAX).await.unwrap());
    assert_eq!(tx.receive(BILLING, &last).await.unwrap(), APPLY);
    assert_eq!(tx.receive(BILLING, &last).await.unwrap(), Received::Duplicate);
    assert!(tx.next_parked(BILLING, &order("1")).await.unwrap().is_none());
    tx.commit().await;
}

pub async fn an_event_that_readers_cannot_hold_is_refused(desk: Desk) {
    let mut tx = desk.begin().await;
    let deep = format!("{}{}", "[".repeat(121), "]".repeat(121));
    for payload in [r#"{"a": "\ud800"}"#, "[1e400]", &deep] {
        let payload = RawValue::from_string(payload.to_owned()).unwrap();
        let refused = refusal(tx.receive(BILLING, &Event { payload, ..event("1", 2) }).await);
        assert!(matches!(refused, InvalidInbox::Payload(_)), "{refused:?}");
    }
    for (kind, event_type) in [("", "t"), ("a\nb", "t"), ("order", "")] {
        let sent = Event { event_type: event_type.to_owned(), ..event("1", 2) };
        let sent = Event { aggregate: Aggregate::new(kind, "1"), ..sent };
        assert!(matches!(refusal(tx.receive(BILLING, &sent).await), InvalidInbox::Name(_)), "{kind:?}");
    }
    tx.commit().await;
    assert!(desk.store.gaps(None, None, 10).await.unwrap().is_empty());
}
