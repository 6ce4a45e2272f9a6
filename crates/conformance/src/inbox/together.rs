//! Concurrent processing under one consumer name.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use milepost_core::event::Event;
use milepost_core::inbox::Received;

use super::{APPLY, APPLY_AND_MORE, BILLING, event, order};
use milepost_testkit::inbox::{Desk, take_in};

/// Number of aggregates in the combined test.
const ORDERS: usize = 6;
/// Number of events of each aggregate.
const EVENTS: i64 = 25;

/// Returns the deliveries of a broker: each event up to three times, mostly out of order.
fn deliveries(random: &mut fastrand::Rng) -> VecDeque<Event> {
    let mut deliveries = Vec::new();
    for order in 0..ORDERS {
        for sequence in 1..=EVENTS {
            let event = event(&order.to_string(), sequence);
            for _ in 0..random.usize(1..=3) {
                // Most events arrive nearly in time, some much too late.
                let late = if random.u8(0..10) == 0 { 40 } else { 5 };
                deliveries.push((sequence + random.i64(0..=late), event.clone()));
            }
        }
    }
    random.shuffle(&mut deliveries);
    deliveries.sort_by_key(|(at, _)| *at);
    deliveries.into_iter().map(|(_, event)| event).collect()
}

pub async fn whatever_comes_in_whatever_order_has_its_effect_once_and_in_order(desk: Desk) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let queue = Arc::new(Mutex::new(deliveries(&mut random)));
    let consumers = (0..4).map(|_| {
        let (desk, queue, mut random) = (desk.clone(), queue.clone(), random.fork());
        tokio::spawn(async move {
            while let Some(event) = { queue.lock().unwrap().pop_front() } {
                let mut tx = desk.begin().await;
                take_in(tx.as_mut(), BILLING, &event).await;
                match random.u8(0..20) {
                    0 => tx.roll_back().await,
                    1 => tx.die().await,
                    _ => {
                        tx.commit().await;
                        continue;
                    }
                }
                // The event was not acknowledged, so it is delivered again.
                queue.lock().unwrap().push_back(event);
            }
        })
    });
    join_all(consumers).await.into_iter().for_each(|consumer| consumer.unwrap());
    for order in 0..ORDERS {
        let effects = desk.effects_of(BILLING, &super::order(&order.to_string())).await;
        assert_eq!(effects, (1..=EVENTS).collect::<Vec<_>>(), "order {order}, seed {seed}");
    }
    let seen = &desk.store.consumers().await.unwrap()[0];
    assert_eq!((seen.aggregates, seen.parked, seen.dead), (ORDERS as u64, 0, 0));
    assert!(desk.store.inbox_ready(BILLING, 10).await.unwrap().is_empty());
}

pub async fn what_dies_between_effect_and_commit_leaves_nothing(desk: Desk) {
    desk.take(BILLING, &event("1", 2)).await;
    let mut tx = desk.begin().await;
    assert_eq!(take_in(tx.as_mut(), BILLING, &event("1", 1)).await, APPLY_AND_MORE);
    tx.die().await;
    assert!(desk.effects_of(BILLING, &order("1")).await.is_empty());
    assert_eq!(desk.take(BILLING, &event("1", 1)).await, APPLY_AND_MORE);
    assert_eq!(desk.effects_of(BILLING, &order("1")).await, [1, 2]);
}

pub async fn two_that_take_in_the_same_event_at_once_apply_it_once(desk: Desk) {
    for sequence in 1..=20 {
        let event = event("1", sequence);
        let calls = (0..2).map(|_| {
            let (desk, event) = (desk.clone(), event.clone());
            tokio::spawn(async move { desk.take(BILLING, &event).await })
        });
        let mut answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        answers.sort_by_key(|answer| *answer == Received::Duplicate);
        assert_eq!(answers, [APPLY, Received::Duplicate]);
    }
}
