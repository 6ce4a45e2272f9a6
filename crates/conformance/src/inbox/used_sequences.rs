//! Events with a sequence that another event has.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use milepost_core::event::Event;
use milepost_core::ident::EventId;
use milepost_core::inbox::listing::{DeadFilter, DeadReason};
use milepost_core::inbox::{
    Consumer, GapPolicy, Received, SEQUENCE_FREED, SEQUENCE_PROCESSED, SEQUENCE_USED, SEQUENCE_WAITS,
};
use milepost_core::retention::{Keep, Pace, RetentionPolicy};

use super::{APPLY, APPLY_AND_MORE, BILLING, PARKED, event, order};
use crate::retention::prune_some;
use milepost_testkit::inbox::Desk;

/// Returns an event with another id than that of [`event`].
fn another(order: &str, sequence: i64) -> Event {
    Event { id: EventId::new(), ..event(order, sequence) }
}

/// Returns the reasons of all dead letters in words, oldest first.
async fn whys(desk: &Desk) -> Vec<String> {
    let filter = DeadFilter { consumer: None, before: None, limit: 100 };
    let letters = desk.store.dead_letters(&filter).await.unwrap();
    letters.into_iter().rev().map(|it| it.why).collect()
}

/// Returns the sequences, reasons and ids of all dead letters, oldest first.
async fn letters(desk: &Desk) -> Vec<(i64, DeadReason, Option<EventId>)> {
    let filter = DeadFilter { consumer: None, before: None, limit: 100 };
    let letters = desk.store.dead_letters(&filter).await.unwrap();
    letters
        .iter()
        .rev()
        .map(|it| (*it.sequences.start(), it.reason, it.event.as_ref().map(|event| event.id)))
        .collect()
}

pub async fn another_event_with_a_used_sequence_is_kept_for_operators(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY);
    let other = another("1", 1);
    assert_eq!(desk.take(BILLING, &other).await, Received::Late);
    assert_eq!(desk.take(BILLING, &other).await, Received::Duplicate, "it is kept already");
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, Received::Duplicate);
    assert_eq!(letters(&desk).await, [(1, DeadReason::Late, Some(other.id))]);
    let third = another("1", 1);
    assert_eq!(desk.take(BILLING, &third).await, Received::Late, "several with one sequence are kept");
    assert_eq!(whys(&desk).await, [SEQUENCE_USED; 2]);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY, "the order goes on");
}

pub async fn another_event_with_the_sequence_of_one_that_waits_is_kept_for_operators(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, PARKED);
    let other = another("1", 2);
    assert_eq!(desk.take(BILLING, &other).await, Received::Late);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, PARKED, "the first one waits");
    assert_eq!(letters(&desk).await, [(2, DeadReason::Late, Some(other.id))]);
    // A consumer that does not process the parked event itself, and receives another one with its sequence.
    let mut tx = desk.begin().await;
    assert_eq!(tx.receive(BILLING, &event("1", 1)).await.unwrap(), APPLY_AND_MORE);
    tx.effect(BILLING, &event("1", 1)).await;
    tx.commit().await;
    let next = another("1", 2);
    assert_eq!(desk.take(BILLING, &next).await, APPLY_AND_MORE);
    let left = [other.id, event("1", 2).id].map(|id| (2, DeadReason::Late, Some(id)));
    assert_eq!(letters(&desk).await, left, "the one that waited is not lost");
    assert_eq!(whys(&desk).await, [SEQUENCE_WAITS, SEQUENCE_PROCESSED]);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2]);
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 0);
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, APPLY);
}

pub async fn an_event_that_is_kept_for_operators_follows_when_the_one_before_it_is_dropped(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, PARKED);
    let (other, third) = (another("1", 3), another("1", 3));
    for late in [&other, &third] {
        assert_eq!(desk.take(BILLING, late).await, Received::Late);
        assert_eq!(desk.take(BILLING, late).await, Received::Duplicate);
    }
    let give_up = async || {
        desk.transactions.age().await;
        desk.store.give_up_gaps(Some(BILLING), 100).await.unwrap();
    };
    let drop_gap = async || {
        let filter = DeadFilter { consumer: None, before: None, limit: 100 };
        let all = desk.store.dead_letters(&filter).await.unwrap();
        let gap: Vec<_> = all.iter().filter(|it| it.reason == DeadReason::Gap).map(|it| it.id).collect();
        assert_eq!(desk.store.drop_dead(&gap).await.unwrap(), 1);
        gap
    };
    give_up().await;
    drop_gap().await;
    let left = [(3, DeadReason::Gap, Some(other.id)), (3, DeadReason::Late, Some(third.id))];
    assert_eq!(letters(&desk).await, left);
    assert_eq!(whys(&desk).await, [SEQUENCE_FREED, SEQUENCE_WAITS]);
    assert_eq!(desk.take(BILLING, &other).await, PARKED);
    let filter = DeadFilter { consumer: None, before: None, limit: 100 };
    let gap = desk.store.dead_letters(&filter).await.unwrap()[1].id;
    assert_eq!(desk.store.retry_dead(&[gap]).await.unwrap(), 1, "it waits as the one before it did");
    assert_eq!(letters(&desk).await, [(3, DeadReason::Late, Some(third.id))]);
    give_up().await;
    drop_gap().await;
    assert_eq!(letters(&desk).await, [(3, DeadReason::Gap, Some(third.id))]);
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY_AND_MORE);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3]);
    assert!(letters(&desk).await.is_empty(), "nothing is left that could be applied again");
    assert_eq!(desk.store.consumers().await.unwrap()[0].dead, 0);
}

pub async fn an_event_that_is_kept_for_operators_follows_when_the_one_before_it_is_forgotten(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, PARKED);
    desk.transactions.age().await;
    desk.store.give_up_gaps(Some(BILLING), 100).await.unwrap();
    let other = another("1", 2);
    assert_eq!(desk.take(BILLING, &other).await, Received::Late);
    desk.transactions.age().await;
    let policy = RetentionPolicy { failed: Keep::For(Duration::from_secs(1800)), ..RetentionPolicy::FOREVER };
    let pruned = prune_some(desk.store.as_ref(), &policy, Pace { limit: 1, rest: 0 }).await;
    assert_eq!(pruned.what.inbox_dead, 1);
    assert_eq!(letters(&desk).await, [(2, DeadReason::Gap, Some(other.id))]);
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2]);
    assert_eq!(desk.store.consumers().await.unwrap()[0].dead, 0);
}

pub async fn the_letter_of_an_event_that_is_processed_after_all_is_deleted(desk: Desk) {
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, PARKED);
    let other = another("1", 3);
    assert_eq!(desk.take(BILLING, &other).await, Received::Late);
    assert!(desk.store.expect_from(BILLING, &order("1"), 3).await.unwrap());
    assert_eq!(desk.take(BILLING, &other).await, APPLY_AND_MORE);
    assert_eq!(letters(&desk).await, [(3, DeadReason::Late, Some(event("1", 3).id))], "the one that waited");
    // The last event is known: another one with its sequence is noticed, too.
    assert_eq!(desk.take(BILLING, &another("1", 3)).await, Received::Late);
}

pub async fn an_event_that_was_emitted_after_a_later_one_was_processed_is_another_one(desk: Desk) {
    for sequence in 1..=3 {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    // As after the log was restored to the time before event 2.
    let more_than_clocks_differ = SignedDuration::from_secs(11);
    let anew =
        |sequence| Event { emitted_at: Timestamp::now() + more_than_clocks_differ, ..another("1", sequence) };
    assert_eq!(desk.take(BILLING, &anew(2)).await, Received::Late);
    assert_eq!(desk.take(BILLING, &anew(3)).await, Received::Late);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, Received::Duplicate);
    assert_eq!(desk.take(BILLING, &anew(4)).await, APPLY);
    assert_eq!(letters(&desk).await.len(), 2);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3, 4]);
}

pub async fn another_event_with_a_used_sequence_is_noticed_after_a_gap_was_skipped(desk: Desk) {
    let skipping = Consumer { gap_policy: GapPolicy::SkipGap, ..Consumer::new(BILLING) };
    desk.store.put_consumer(&skipping).await.unwrap();
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY);
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, PARKED);
    desk.transactions.age().await;
    desk.store.give_up_gaps(Some(BILLING), 100).await.unwrap();
    // As after the log was restored to the time before event 1, and numbers events from 1 on again.
    let emitted_at = Timestamp::now() + SignedDuration::from_secs(11);
    assert_eq!(desk.take(BILLING, &Event { emitted_at, ..another("1", 1) }).await, Received::Late);
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, Received::Duplicate);
}
