//! Operations on dead letters of inboxes.

use std::time::Duration;

use milepost_core::inbox::InvalidInbox;
use milepost_core::inbox::listing::{DeadFilter, DeadLetter, LetterId};
use milepost_core::retention::{Keep, Pace, RetentionPolicy};

use serde_json::json;

use super::{APPLY_AND_MORE, BILLING, event, order, refusal};
use crate::audit::{acting, only_entry};
use crate::retention::prune_some;
use crate::runtime;
use milepost_testkit::inbox::Desk;
use milepost_testkit::wait;

/// Creates dead letters for the events 3, 4 and 5 of an order. Returns them, newest first.
async fn dead(desk: &Desk, consumer: &str) -> Vec<DeadLetter> {
    for sequence in [1, 3, 4, 5] {
        desk.take(consumer, &event("1", sequence)).await;
    }
    desk.transactions.age().await;
    desk.store.give_up_gaps(Some(consumer), 100).await.unwrap();
    listed(desk, Some(consumer), None, 10).await
}

async fn listed(
    desk: &Desk,
    consumer: Option<&str>,
    before: Option<LetterId>,
    limit: u32,
) -> Vec<DeadLetter> {
    let filter = DeadFilter { consumer: consumer.map(str::to_owned), before, limit };
    desk.store.dead_letters(&filter).await.unwrap()
}

fn sequences(letters: &[DeadLetter]) -> Vec<i64> {
    letters.iter().map(|letter| *letter.sequences.start()).collect()
}

pub async fn dead_letters_are_listed_newest_first(desk: Desk) {
    let letters = dead(&desk, BILLING).await;
    dead(&desk, "shipping").await;
    assert_eq!(sequences(&letters), [5, 4, 3]);
    assert_eq!(listed(&desk, None, None, 10).await.len(), 6);
    let page = listed(&desk, Some(BILLING), Some(letters[0].id), 1).await;
    assert_eq!(sequences(&page), [4]);
    let shown = serde_json::to_value(&page[0]).unwrap();
    assert_eq!((&shown["reason"], &shown["aggregate_id"]), (&"gap".into(), &"1".into()));
    assert_eq!(shown["event"]["aggregate_seq"], 4);
}

pub async fn a_dead_letter_waits_again(desk: Desk) {
    let letters = dead(&desk, BILLING).await;
    let ids: Vec<LetterId> = letters.iter().map(|letter| letter.id).collect();
    let acting = acting(&desk.store);
    assert_eq!(acting.retry_dead(&ids[1..]).await.unwrap(), 2);
    let entry = only_entry(&desk.store).await;
    assert_eq!((entry.what.as_str(), entry.subject), ("inbox.retry", None));
    assert_eq!(entry.detail["before"].as_array().unwrap().len(), 2, "{}", entry.detail);
    assert_eq!(entry.detail.get("after"), None, "they are no longer dead letters");
    let gap = &desk.store.gaps(None, None, 10).await.unwrap()[0];
    assert_eq!((gap.missing, gap.parked), (2, 2));
    let seen = &desk.store.consumers().await.unwrap()[0];
    assert_eq!((seen.parked, seen.dead), (2, 1));
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3, 4, 5]);
}

pub async fn a_dropped_letter_is_gone_and_audited(desk: Desk) {
    let letters = dead(&desk, BILLING).await;
    let four = letters[1].id;
    assert_eq!(acting(&desk.store).drop_dead(&[four]).await.unwrap(), 1);
    assert_eq!(acting(&desk.store).drop_dead(&[four, LetterId(4711)]).await.unwrap(), 0);
    let entry = only_entry(&desk.store).await;
    assert_eq!((entry.what.as_str(), entry.subject), ("inbox.drop", Some(four.to_string())));
    let given_up = letters[1].event.as_ref().unwrap().id;
    assert_eq!(entry.detail["before"][0]["event_id"], json!(given_up), "{}", entry.detail);
    assert_eq!(sequences(&listed(&desk, None, None, 10).await), [5, 3]);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3], "event 4 is missing now");
    desk.take(BILLING, &event("1", 4)).await;
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2, 3, 4, 5]);
}

pub async fn what_cannot_wait_again_is_told(desk: Desk) {
    let letters = dead(&desk, BILLING).await;
    let (three, five) = (letters[2].id, letters[0].id);
    let missing = LetterId(4711);
    let refused = desk.store.retry_dead(&[five, missing]).await;
    assert_eq!(refusal(refused), InvalidInbox::NoSuchLetter(missing));
    assert_eq!(listed(&desk, None, None, 10).await.len(), 3, "nothing was changed");
    desk.store.expect_from(BILLING, &order("1"), 4).await.unwrap();
    assert_eq!(refusal(desk.store.retry_dead(&[three]).await), InvalidInbox::Past(three));
    assert_eq!(desk.drain(BILLING, &order("1")).await, [4, 5]);
    assert_eq!(sequences(&listed(&desk, None, None, 10).await), [3], "the dead letter can be inspected");
}

pub async fn dead_letters_are_forgotten_in_time(desk: Desk) {
    dead(&desk, BILLING).await;
    let half = Keep::For(Duration::from_secs(1800));
    let policy = RetentionPolicy { failed: half, ..RetentionPolicy::FOREVER };
    let pace = Pace { limit: 2, rest: 0 };
    assert_eq!(desk.store.prune(&policy, pace).await.unwrap().rows, 0);
    desk.transactions.age().await;
    assert_eq!(desk.store.prunable(&policy).await.unwrap().inbox_dead, 3);
    let pruned = prune_some(desk.store.as_ref(), &policy, pace).await;
    assert_eq!((pruned.what.inbox_dead, pruned.more), (2, true));
    assert_eq!(prune_some(desk.store.as_ref(), &policy, pace).await.what.inbox_dead, 1);
    assert_eq!(desk.take(BILLING, &event("1", 2)).await, super::APPLY, "no later event is parked");
}

pub async fn a_worker_counts_the_dead_letters_that_it_forgets(desk: Desk) {
    dead(&desk, BILLING).await;
    desk.transactions.age().await;
    let policy = RetentionPolicy { failed: Keep::For(Duration::from_secs(1800)), ..RetentionPolicy::FOREVER };
    let worker = runtime::builder(desk.store.clone())
        .options(|options| options.retention = policy)
        .start()
        .await
        .expect("started");
    wait::until("all are deleted", || async { worker.stats().inbox_dead_pruned == 3 }).await;
    worker.shutdown().await;
}
