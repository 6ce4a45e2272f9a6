//! Sequence numbers of events.

use futures::future::join_all;
use milepost_core::event::{InvalidEvent, SEQUENCE_MAX};

use super::{Log, invalid, of};

pub async fn events_of_an_aggregate_are_numbered_from_one(log: Log) {
    for sequence in 1..=3 {
        assert_eq!(log.emit(&of("1")).await, sequence);
    }
    assert_eq!(log.emit(&of("2")).await, 1, "numbers are per aggregate");
    let mut other = of("1");
    other.aggregate.kind = "invoice".to_owned();
    assert_eq!(log.emit(&other).await, 1, "the type is part of the aggregate");
}

pub async fn a_call_numbers_its_events_in_order(log: Log) {
    let orders = ["b", "a", "b", "c", "a", "b"];
    let events: Vec<_> = orders.iter().map(|order| of(order)).collect();
    let emitted = log.store.emit_many(&events).await.unwrap();
    let sequences: Vec<i64> = emitted.iter().map(|emitted| emitted.sequence).collect();
    assert_eq!(sequences, [1, 1, 2, 1, 2, 3]);
    let logged = log.all().await;
    let order: Vec<&str> = logged.iter().map(|logged| logged.event.aggregate.id.as_str()).collect();
    assert_eq!(order, orders, "the events are in the order of the call");
    assert!(logged.iter().zip(&events).all(|(logged, event)| logged.event.id == event.id));
}

pub async fn concurrent_emitters_leave_no_gap_and_commit_in_order(log: Log) {
    let emitters = (0..8).map(|emitter| {
        let log = log.clone();
        tokio::spawn(async move {
            for round in 0..25 {
                let mut events = vec![of("shared"), of("shared"), of(&format!("own-{emitter}"))];
                if round % 4 == 3 {
                    // Rejected as a whole after the other events were processed.
                    events.push(of("shared").sequence(1));
                    invalid(log.store.emit_many(&events).await);
                } else {
                    log.store.emit_many(&events).await.unwrap();
                }
            }
        })
    });
    join_all(emitters).await.into_iter().for_each(Result::unwrap);
    let emitted = 8 * 2 * 19;
    assert_eq!(log.sequences("shared").await, (1..=emitted).collect::<Vec<i64>>());
    assert_eq!(log.sequences("own-3").await, (1..=19).collect::<Vec<i64>>());
    assert_eq!(log.emit(&of("shared")).await, emitted + 1, "the head is at the last event");
}

pub async fn a_given_sequence_has_to_follow(log: Log) {
    assert_eq!(log.emit(&of("1").sequence(1)).await, 1);
    assert_eq!(log.emit(&of("1").sequence(2)).await, 2);
    for repeated in [1, 2] {
        let refused = log.refusal(&of("1").sequence(repeated)).await;
        assert!(
            matches!(&refused, InvalidEvent::Repeated { sequence, last: 2, aggregate }
                if *sequence == repeated && aggregate.id == "1"),
            "{refused:?}"
        );
    }
    let refused = log.refusal(&of("1").sequence(2).allow_gap()).await;
    assert!(matches!(refused, InvalidEvent::Repeated { .. }), "a repeated number is not a gap: {refused:?}");
    assert_eq!(log.emit(&of("1")).await, 3, "the refused event used no number");
}

pub async fn a_gap_is_left_only_where_it_is_allowed(log: Log) {
    log.emit(&of("1")).await;
    let refused = log.refusal(&of("1").sequence(3)).await;
    assert!(matches!(refused, InvalidEvent::Gap { sequence: 3, last: 1, .. }), "{refused:?}");
    assert!(refused.to_string().contains("order/1 is at sequence 1"), "{refused}");
    assert_eq!(log.emit(&of("1").sequence(3).allow_gap()).await, 3);
    assert_eq!(log.emit(&of("1")).await, 4, "the sequence continues after the gap");
    assert_eq!(log.sequences("1").await, [1, 3, 4]);
}

pub async fn the_first_event_may_have_any_sequence(log: Log) {
    assert_eq!(log.emit(&of("1").sequence(40)).await, 40);
    assert_eq!(log.emit(&of("1")).await, 41);
    let refused = log.refusal(&of("1").sequence(7)).await;
    assert!(matches!(refused, InvalidEvent::Repeated { last: 41, .. }), "{refused:?}");
}

pub async fn given_and_assigned_sequences_mix(log: Log) {
    log.emit(&of("1")).await;
    let call = [
        of("1"),
        of("2").sequence(10),
        of("1").sequence(3),
        of("1").sequence(7).allow_gap(),
        of("2"),
        of("1"),
    ];
    let emitted = log.store.emit_many(&call).await.unwrap();
    let sequences: Vec<i64> = emitted.iter().map(|emitted| emitted.sequence).collect();
    assert_eq!(sequences, [2, 10, 3, 7, 11, 8]);
    let refused = invalid(log.store.emit_many(&[of("1"), of("1").sequence(9)]).await);
    assert!(matches!(refused, (1, InvalidEvent::Repeated { sequence: 9, last: 9, .. })), "{refused:?}");
    assert_eq!((log.emit(&of("1")).await, log.emit(&of("2")).await), (9, 12));
}

pub async fn the_highest_sequence_is_the_last_one(log: Log) {
    assert_eq!(log.emit(&of("1").sequence(SEQUENCE_MAX)).await, SEQUENCE_MAX);
    let refused = log.refusal(&of("1")).await;
    assert!(refused.to_string().contains("has no sequence left"), "{refused}");
    let refused = log.refusal(&of("2").sequence(SEQUENCE_MAX + 1)).await;
    assert_eq!(refused, InvalidEvent::Sequence(SEQUENCE_MAX + 1));
}
