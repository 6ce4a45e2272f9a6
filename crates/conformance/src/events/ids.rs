//! Event ids.

use futures::future::join_all;
use milepost_core::event::{Emitted, InvalidEvent, NewEvent};
use milepost_core::ident::EventId;

use super::{Log, invalid, of, with};

fn duplicate(sequence: i64) -> Emitted {
    Emitted { sequence, duplicate: true }
}

pub async fn an_event_emitted_again_changes_nothing(log: Log) {
    let event = with("1", r#"{"cents": 1200}"#).header("traceparent", "00-1");
    assert_eq!(log.emit(&event).await, 1);
    log.emit(&of("1")).await;
    assert_eq!(log.store.emit(&event).await.unwrap(), duplicate(1));
    assert_eq!(log.store.emit(&event.clone().sequence(1)).await.unwrap(), duplicate(1));
    assert_eq!(log.emit(&of("1")).await, 3, "the head has not moved");
    assert_eq!(log.all().await.len(), 3);
}

pub async fn an_event_emitted_again_beside_new_ones_takes_no_number(log: Log) {
    let (first, second) = (of("1"), of("1"));
    log.store.emit_many(&[first.clone(), second.clone()]).await.unwrap();
    let again = [of("1"), second, of("1").sequence(4), first, of("1")];
    let emitted = log.store.emit_many(&again).await.unwrap();
    let found: Vec<_> = emitted.iter().map(|emitted| (emitted.sequence, emitted.duplicate)).collect();
    assert_eq!(found, [(3, false), (2, true), (4, false), (1, true), (5, false)]);
    assert_eq!(log.sequences("1").await, [1, 2, 3, 4, 5]);
    assert_eq!(log.emit(&of("1")).await, 6);
}

pub async fn the_same_content_written_otherwise_is_the_same(log: Log) {
    let id = EventId::new();
    log.emit(&with("1", r#"{"a": 1.0, "b": ["é", 1e2]}"#).id(id)).await;
    let otherwise = with("1", r#"{"b":["\u00e9",100],"a":1}"#).id(id);
    assert_eq!(log.store.emit(&otherwise).await.unwrap(), duplicate(1));
}

pub async fn other_content_under_the_same_id_is_refused(log: Log) {
    let event = with("1", "[1, 12345678901234567890123]").header("a", "1");
    log.emit(&event).await;
    let mut other_type = event.clone();
    other_type.event_type = "order.gone".to_owned();
    let mut other_aggregate = event.clone();
    other_aggregate.aggregate.id = "2".to_owned();
    let others = [
        other_type,
        other_aggregate,
        event.clone().header("a", "2"),
        event.clone().header("b", "1"),
        event.clone().sequence(2),
        NewEvent { payload: with("1", "[1, 12345678901234567890124]").payload, ..event.clone() },
    ];
    for other in others {
        let (index, refused) = invalid(log.store.emit_many(&[of("1"), other.clone()]).await);
        assert_eq!((index, &refused), (1, &InvalidEvent::OtherContent { id: event.id }), "{other:?}");
    }
    assert_eq!(log.all().await.len(), 1, "nothing was written");
    assert_eq!(log.emit(&of("1")).await, 2);
    assert_eq!(log.emit(&of("2")).await, 1, "no head was created");
}

pub async fn an_id_twice_in_one_call_is_one_event(log: Log) {
    let event = of("1");
    let emitted = log.store.emit_many(&[event.clone(), of("1"), event.clone()]).await.unwrap();
    assert_eq!(emitted[2], duplicate(1));
    assert_eq!(log.sequences("1").await, [1, 2]);

    let fresh = of("1");
    let other = NewEvent { payload: with("1", "[1]").payload, ..fresh.clone() };
    let (index, refused) = invalid(log.store.emit_many(&[fresh.clone(), other]).await);
    assert_eq!((index, refused), (1, InvalidEvent::OtherContent { id: fresh.id }));
    let elsewhere = NewEvent { aggregate: of("0").aggregate, ..fresh.clone() };
    let (index, refused) = invalid(log.store.emit_many(&[fresh.clone(), elsewhere]).await);
    assert_eq!((index, refused), (1, InvalidEvent::OtherContent { id: fresh.id }));
    assert_eq!(log.sequences("1").await, [1, 2]);
}

pub async fn one_event_emitted_by_many_at_once_is_one(log: Log) {
    let event = of("1");
    let calls = (0..20).map(|_| {
        let (log, event) = (log.clone(), event.clone());
        tokio::spawn(async move { log.store.emit_many(&[event, of("1")]).await.unwrap() })
    });
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| !answer[0].duplicate).count(), 1);
    assert!(answers.iter().all(|answer| answer[0].sequence == answers[0][0].sequence), "{answers:?}");
    assert_eq!(log.sequences("1").await, (1..=21).collect::<Vec<i64>>());
}

pub async fn an_id_given_to_two_aggregates_at_once_belongs_to_one(log: Log) {
    for _ in 0..20 {
        let id = EventId::new();
        let calls = (0..4).map(|order| {
            let log = log.clone();
            tokio::spawn(async move { log.store.emit(&of(&order.to_string()).id(id)).await })
        });
        let answers = join_all(calls).await.into_iter().map(Result::unwrap);
        let (made, refused): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 3));
        for answer in refused {
            assert_eq!(invalid(answer), (0, InvalidEvent::OtherContent { id }));
        }
    }
    let all = log.all().await;
    assert_eq!(all.len(), 20);
    for order in 0..4 {
        let sequences = log.sequences(&order.to_string()).await;
        let dense: Vec<i64> = (1..=i64::try_from(sequences.len()).unwrap()).collect();
        assert_eq!(sequences, dense, "a refused event used no number");
    }
}
