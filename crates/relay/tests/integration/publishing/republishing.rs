//! Events that are published again.

use crate::publishing::desk::{ALL, Desk, options};
use crate::publishing::operations::{order, relay_error};
use milepost_core::event::relay_listing::Replay;
use milepost_core::event::{NewEvent, PageSize, RelayError};
use milepost_testkit::wait;
use std::time::Duration;

pub(crate) async fn an_aggregate_is_published_again_from_a_sequence_on(desk: Desk) {
    desk.emit("1", 5).await;
    desk.emit("2", 5).await;
    let running = desk.run(options("s"));
    desk.until_taken(10).await;
    wait::until("all results are stored", || async {
        desk.store.subscriptions().await.unwrap()[0].backlog == 0
    })
    .await;
    let from = Replay::Aggregate { aggregate: order("1"), from: 3 };
    assert_eq!(desk.store.replay("s", &from).await.unwrap(), 3);
    wait::until("three events are published again", || async { desk.sink.taken().len() == 13 }).await;
    desk.emit("1", 1).await;
    desk.until_taken(11).await;
    running.stop().await;
    let again: Vec<_> =
        desk.sink.taken()[10..].iter().map(|e| (e.aggregate.id.clone(), e.sequence)).collect();
    assert_eq!(again, [3, 4, 5, 6].map(|n| ("1".to_owned(), n)));
    let error =
        relay_error(desk.store.replay("s", &Replay::Aggregate { aggregate: order("9"), from: 1 }).await)
            .await;
    assert_eq!(error, RelayError::NoEvents(order("9")));
}

pub(crate) async fn all_is_published_again_since_a_time(desk: Desk) {
    let running = desk.run(options("s"));
    desk.emit_mixed(7, 50).await;
    desk.until_taken(50).await;
    wait::until("all results are stored", || async {
        desk.store.subscriptions().await.unwrap()[0].backlog == 0
    })
    .await;
    let since = desk.sink.taken().iter().map(|event| event.emitted_at).min().unwrap();
    assert_eq!(desk.store.replay("s", &Replay::Since(since)).await.unwrap(), 50);
    wait::until("all events are published again", || async { desk.sink.taken().len() == 100 }).await;
    running.stop().await;
    assert_eq!(desk.sink.distinct(), 50);
}

pub(crate) async fn only_what_a_subscription_wants_is_published_again(desk: Desk) {
    let mut wanted = options("s");
    wanted.subscription.filter.event_types = vec!["order.changed".to_owned()];
    let running = desk.run(wanted);
    desk.emit("1", 2).await;
    let other = NewEvent::new(order("1"), "order.noted", &()).unwrap();
    desk.store.emit(&other).await.unwrap();
    desk.emit("1", 1).await;
    desk.until_taken(3).await;
    wait::until("all results are stored", || async {
        desk.store.subscriptions().await.unwrap()[0].backlog == 0
    })
    .await;
    let from = Replay::Aggregate { aggregate: order("1"), from: 1 };
    assert_eq!(desk.store.replay("s", &from).await.unwrap(), 4);
    wait::until("nothing is parked", || async { desk.store.parked(None, None, 1).await.unwrap().is_empty() })
        .await;
    running.stop().await;
    let sequences: Vec<i64> = desk.sink.taken().iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, [1, 2, 4, 1, 2, 4]);
}

pub(crate) async fn what_is_published_again_is_read_page_by_page(desk: Desk) {
    const AGGREGATES: usize = 6;
    let long = "x".repeat(500_000);
    for n in 0..2 * AGGREGATES {
        let event = NewEvent::new(order(&(n % AGGREGATES).to_string()), "order.changed", &long).unwrap();
        desk.store.emit(&event).await.unwrap();
    }
    let mut small = options("s");
    small.page = PageSize { events_max: 1_000, bytes_max: 1_600_000 };
    let running = desk.run(small.clone());
    desk.until_taken(2 * AGGREGATES).await;
    wait::until("all results are stored", || async {
        desk.store.subscriptions().await.unwrap()[0].backlog == 0
    })
    .await;
    running.stop().await;
    let since = desk.sink.taken().iter().map(|event| event.emitted_at).min().unwrap();
    assert_eq!(desk.store.replay("s", &Replay::Since(since)).await.unwrap(), 2 * AGGREGATES as u64);
    let (publisher, mut reader) = desk.reader("s", Duration::from_secs(60)).await;
    reader.balance().await.unwrap();
    let due = desk.store.due(&publisher, 100, small.page).await.unwrap();
    let events: usize = due.aggregates.iter().map(|of| of.events.len()).sum();
    // The first payload beyond the limit ends the page.
    assert!((1..=4).contains(&events), "{events}");
    let few = PageSize { events_max: 3, ..ALL };
    let due = desk.store.due(&publisher, 100, few).await.unwrap();
    assert_eq!(due.aggregates.iter().map(|of| of.events.len()).sum::<usize>(), 3);
    desk.store.leave(&publisher).await.unwrap();
    let running = desk.run(small);
    wait::until("all events are published again", || async { desk.sink.taken().len() == 4 * AGGREGATES })
        .await;
    running.stop().await;
    for n in 0..AGGREGATES {
        let of_one = desk.sink.taken().into_iter().filter(|event| event.aggregate.id == n.to_string());
        assert_eq!(of_one.map(|event| event.sequence).collect::<Vec<_>>(), [1, 2, 1, 2], "order {n}");
    }
}
