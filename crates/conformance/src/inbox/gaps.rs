//! Events that wait for a missing event.

use std::time::Duration;

use milepost_core::inbox::listing::{DeadFilter, DeadLetter, DeadReason, GivenUp};
use milepost_core::inbox::{Consumer, GapPolicy, Received, SEQUENCE_PASSED};

use super::{APPLY, APPLY_AND_MORE, BILLING, PARKED, billing, event, order, refusal};
use milepost_testkit::inbox::Desk;

/// Returns the dead letters, oldest first: sequences and reason.
pub(super) async fn dead(desk: &Desk) -> Vec<(i64, i64, DeadReason)> {
    let filter = DeadFilter { limit: 100, ..DeadFilter::default() };
    let mut letters = desk.store.dead_letters(&filter).await.unwrap();
    letters.reverse();
    let told = |letter: &DeadLetter| (*letter.sequences.start(), *letter.sequences.end(), letter.reason);
    letters.iter().map(told).collect()
}

pub async fn events_that_waited_too_long_become_dead_letters(desk: Desk) {
    for sequence in [1, 4, 3] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    let none = GivenUp::default();
    assert_eq!(desk.store.give_up_gaps(None, 100).await.unwrap(), none, "the time limit has not passed");
    desk.transactions.age().await;
    assert_eq!(desk.store.give_up_gaps(Some("shipping"), 100).await.unwrap(), none);
    let given_up = desk.store.give_up_gaps(Some(BILLING), 100).await.unwrap();
    assert_eq!(given_up, GivenUp { gaps: 1, letters: 2 });
    assert_eq!(dead(&desk).await, [(3, 3, DeadReason::Gap), (4, 4, DeadReason::Gap)]);
    let letters = desk.store.dead_letters(&DeadFilter { limit: 1, ..DeadFilter::default() }).await.unwrap();
    assert_eq!(letters[0].why, "sequence 2 did not arrive within 600 s");
    assert_eq!(letters[0].event.as_ref().unwrap().sequence, 4);
    let seen = &desk.store.consumers().await.unwrap()[0];
    assert_eq!((seen.parked, seen.dead), (0, 2));
    assert_eq!(desk.take(BILLING, &event("1", 3)).await, PARKED, "the event is already parked");
    assert_eq!(desk.store.consumers().await.unwrap()[0].parked, 0);
    assert_eq!(desk.take(BILLING, &event("1", 6)).await, PARKED, "the checkpoint has not moved");
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1]);
}

pub async fn the_missing_event_brings_all_back_in_order(desk: Desk) {
    for sequence in [1, 3, 4] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    desk.transactions.age().await;
    desk.store.give_up_gaps(None, 100).await.unwrap();
    for sequence in [5, 7] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3, 4, 5]);
    assert!(dead(&desk).await.is_empty());
    assert_eq!(desk.store.gaps(None, None, 10).await.unwrap()[0].missing, 6);
    assert_eq!(desk.take(BILLING, &event("1", 6)).await, APPLY_AND_MORE);
    assert_eq!(desk.take(BILLING, &event("1", 8)).await, APPLY, "no parked event is left");
}

pub async fn too_many_that_wait_are_given_up_at_once(desk: Desk) {
    desk.store.put_consumer(&Consumer { parked_max: 3, ..billing() }).await.unwrap();
    for sequence in [3, 4, 6] {
        assert_eq!(desk.take(BILLING, &event("1", sequence)).await, PARKED);
    }
    assert!(dead(&desk).await.is_empty());
    assert_eq!(desk.take(BILLING, &event("1", 7)).await, PARKED);
    let sequences: Vec<i64> = dead(&desk).await.into_iter().map(|(from, ..)| from).collect();
    assert_eq!(sequences, [3, 4, 6, 7]);
    let seen = &desk.store.consumers().await.unwrap()[0];
    assert_eq!((seen.parked, seen.dead), (0, 4));

    let skips = Consumer { parked_max: 1, gap_policy: GapPolicy::SkipGap, ..Consumer::new("shipping") };
    desk.store.put_consumer(&skips).await.unwrap();
    assert_eq!(desk.take("shipping", &event("1", 3)).await, PARKED);
    assert_eq!(desk.take("shipping", &event("1", 4)).await, Received::Parked { more: true });
    assert_eq!(desk.effects_of("shipping", &order("1")).await, [3, 4]);
}

pub async fn a_consumer_may_go_on_past_a_gap(desk: Desk) {
    desk.store.put_consumer(&Consumer { gap_policy: GapPolicy::SkipGap, ..billing() }).await.unwrap();
    for sequence in [1, 4, 5, 7] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    desk.transactions.age().await;
    assert_eq!(desk.store.give_up_gaps(None, 100).await.unwrap(), GivenUp { gaps: 1, letters: 1 });
    assert_eq!(desk.store.inbox_ready(BILLING, 10).await.unwrap(), [order("1")]);
    assert_eq!(desk.drain(BILLING, &order("1")).await, [4, 5]);
    assert_eq!(dead(&desk).await, [(2, 3, DeadReason::NeverCame)]);
    let late = event("1", 3);
    assert_eq!(desk.take(BILLING, &late).await, Received::Late);
    assert_eq!(desk.take(BILLING, &late).await, Received::Duplicate);
    assert_eq!(desk.take(BILLING, &event("1", 4)).await, Received::Duplicate);
    assert_eq!(dead(&desk).await, [(2, 3, DeadReason::NeverCame), (3, 3, DeadReason::Late)]);
    let filter = DeadFilter { consumer: None, before: None, limit: 1 };
    assert_eq!(desk.store.dead_letters(&filter).await.unwrap()[0].why, SEQUENCE_PASSED);
    assert_eq!(desk.take(BILLING, &event("1", 6)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 4, 5, 6, 7]);
}

pub async fn events_that_wait_without_a_gap_are_not_given_up(desk: Desk) {
    desk.take(BILLING, &event("1", 2)).await;
    desk.store.expect_from(BILLING, &order("1"), 2).await.unwrap();
    desk.transactions.age().await;
    assert_eq!(desk.store.give_up_gaps(None, 100).await.unwrap(), GivenUp::default());
    assert_eq!(desk.drain(BILLING, &order("1")).await, [2]);
}

pub async fn a_new_gap_waits_for_its_own_time(desk: Desk) {
    for sequence in [1, 3] {
        desk.take(BILLING, &event("1", sequence)).await;
    }
    desk.transactions.age().await;
    let old = desk.store.gaps(None, None, 10).await.unwrap()[0].gives_up_at;
    desk.take(BILLING, &event("1", 5)).await;
    assert_eq!(
        desk.store.gaps(None, None, 10).await.unwrap()[0].gives_up_at,
        old,
        "the time of the first waiting event"
    );
    desk.take(BILLING, &event("1", 2)).await;
    let new = &desk.store.gaps(None, None, 10).await.unwrap()[0];
    assert_eq!((new.missing, new.parked), (4, 1));
    assert!(new.gives_up_at.duration_since(old) > jiff::SignedDuration::from_mins(59), "{old} {new:?}");
    assert_eq!(desk.store.give_up_gaps(None, 100).await.unwrap(), GivenUp::default());
}

pub async fn gaps_are_given_up_in_portions(desk: Desk) {
    for order in ["1", "2", "3"] {
        for sequence in [3, 4, 5] {
            desk.take(BILLING, &event(order, sequence)).await;
        }
    }
    desk.transactions.age().await;
    let mut letters = Vec::new();
    loop {
        let given_up = desk.store.give_up_gaps(None, 2).await.unwrap();
        if given_up == GivenUp::default() {
            break;
        }
        letters.push(given_up.letters);
    }
    assert_eq!(letters.iter().sum::<u64>(), 9);
    assert!(letters.iter().all(|&letters| letters <= 2), "{letters:?}");
    let seen = &desk.store.consumers().await.unwrap()[0];
    assert_eq!((seen.parked, seen.dead), (0, 9));
    for order in ["1", "2", "3"] {
        desk.store.expect_from(BILLING, &super::order(order), 3).await.unwrap();
        assert_eq!(desk.drain(BILLING, &super::order(order)).await, [3, 4, 5]);
    }
}

pub async fn settings_are_kept_and_unusable_ones_refused(desk: Desk) {
    let wants = Consumer {
        gap_wait: Duration::from_millis(1500),
        parked_max: 7,
        gap_policy: GapPolicy::SkipGap,
        begins_anywhere: true,
        ..billing()
    };
    desk.store.put_consumer(&Consumer { parked_max: 8, ..wants.clone() }).await.unwrap();
    desk.store.put_consumer(&wants).await.unwrap();
    assert_eq!(desk.store.consumers().await.unwrap()[0].consumer, wants);
    let refused = |consumer: Consumer| async move { refusal(desk.store.put_consumer(&consumer).await) };
    assert!(refused(Consumer { parked_max: 0, ..billing() }).await.to_string().contains("parked_max"));
}
