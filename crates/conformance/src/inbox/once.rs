//! Deduplication of events by id.

use std::time::Duration;

use futures::future::join_all;
use milepost_core::ident::EventId;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};

use super::{BILLING, refusal};
use crate::retention::prune_some;
use milepost_testkit::inbox::Desk;

async fn once(desk: &Desk, consumer: &str, event: EventId) -> bool {
    let mut tx = desk.begin().await;
    let first = tx.once(consumer, event).await.unwrap();
    tx.commit().await;
    first
}

pub async fn an_event_is_new_to_each_consumer_once(desk: Desk) {
    let id = EventId::new();
    assert!(once(&desk, BILLING, id).await);
    assert!(!once(&desk, BILLING, id).await);
    assert!(once(&desk, "shipping", id).await);
    let any = EventId("00000000-0000-0000-0000-000000000001".parse().unwrap());
    assert!(once(&desk, BILLING, any).await, "an id may be any UUID");
    let mut tx = desk.begin().await;
    let twice = EventId::new();
    assert!(tx.once(BILLING, twice).await.unwrap());
    assert!(!tx.once(BILLING, twice).await.unwrap(), "also within a transaction");
    tx.commit().await;
}

pub async fn what_is_rolled_back_was_not_taken_in(desk: Desk) {
    let id = EventId::new();
    for _ in 0..2 {
        let mut tx = desk.begin().await;
        assert!(tx.once(BILLING, id).await.unwrap());
        tx.roll_back().await;
    }
    let mut tx = desk.begin().await;
    assert!(tx.once(BILLING, id).await.unwrap());
    tx.die().await;
    assert!(once(&desk, BILLING, id).await);
}

pub async fn of_many_at_once_one_takes_an_event_in(desk: Desk) {
    for _ in 0..10 {
        let id = EventId::new();
        let calls = (0..5).map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move { once(&desk, BILLING, id).await })
        });
        let first = join_all(calls).await.into_iter().filter(|first| *first.as_ref().unwrap()).count();
        assert_eq!(first, 1);
    }
}

pub async fn who_waits_takes_it_in_when_the_first_rolls_back(desk: Desk) {
    for commits in [false, true] {
        let id = EventId::new();
        let mut tx = desk.begin().await;
        assert!(tx.once(BILLING, id).await.unwrap());
        let second = tokio::spawn({
            let desk = desk.clone();
            async move { once(&desk, BILLING, id).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!second.is_finished(), "the result is not known yet");
        if commits {
            tx.commit().await;
        } else {
            tx.roll_back().await;
        }
        assert_eq!(second.await.unwrap(), !commits);
    }
}

pub async fn duplicates_are_counted(desk: Desk) {
    let id = EventId::new();
    for _ in 0..4 {
        once(&desk, BILLING, id).await;
    }
    let mut tx = desk.begin().await;
    assert!(!tx.once(BILLING, id).await.unwrap());
    tx.roll_back().await;
    let seen = desk.store.consumers().await.unwrap();
    assert_eq!((seen.len(), seen[0].consumer.name.as_str(), seen[0].duplicates), (1, BILLING, 3));
}

pub async fn an_id_is_forgotten_in_time_and_new_again(desk: Desk) {
    let (old, new) = (EventId::new(), EventId::new());
    once(&desk, BILLING, old).await;
    desk.transactions.age().await;
    once(&desk, BILLING, new).await;
    let half = Keep::For(Duration::from_secs(1800));
    let policy = RetentionPolicy { inbox: half, ..RetentionPolicy::FOREVER };
    assert_eq!(desk.store.prunable(&policy).await.unwrap().inbox, 1);
    let pruned = prune_some(desk.store.as_ref(), &policy, Pace { limit: 100, rest: 0 }).await;
    assert_eq!((pruned.what.inbox, pruned.rows), (1, 1));
    assert!(!once(&desk, BILLING, new).await);
    assert!(once(&desk, BILLING, old).await, "the event is no longer known");
}

pub async fn a_consumer_without_a_name_is_refused(desk: Desk) {
    let mut tx = desk.begin().await;
    for name in ["", "a\nb", &"x".repeat(201)] {
        let why = refusal(tx.once(name, EventId::new()).await).to_string();
        assert!(why.contains("name of the consumer"), "{why}");
    }
    tx.commit().await;
}
