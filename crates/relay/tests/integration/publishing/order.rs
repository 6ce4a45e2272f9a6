//! Selection and order of published events.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::event::{Aggregate, Begin, LeftOut, NewEvent, Outcome, PageSize, SubscriptionFilter};
use milepost_relay::publisher::PublisherOptions;

use crate::common::script::Script;
use crate::publishing::desk::{ALL, Desk, options, up_to};

pub(crate) async fn what_was_emitted_is_published_once_and_in_order(desk: Desk) {
    desk.emit_mixed(37, 2_000).await;
    let running = desk.run(options("s"));
    desk.until_taken(2_000).await;
    running.stop().await;
    assert_eq!(desk.sink.taken().len(), 2_000, "each event once");
    for (order, sequences) in desk.sink.firsts_of_all() {
        assert_eq!(sequences, up_to(sequences.len() as i64), "order {order}");
    }
}

pub(crate) async fn what_is_emitted_later_is_published_without_waiting_for_a_poll(desk: Desk) {
    let running = desk.run(options("s"));
    for n in 1..=20 {
        desk.emit("17", 1).await;
        desk.until_taken(n).await;
    }
    running.stop().await;
    assert_eq!(desk.sink.firsts("17"), up_to(20));
}

pub(crate) async fn a_look_in_vain_leaves_what_is_held(desk: Desk) {
    let (_, mut reader) = desk.reader("r", Duration::from_secs(60)).await;
    reader.balance().await.unwrap();
    for n in 1..=3 {
        assert!(reader.page(crate::publishing::desk::ALL).await.unwrap().events.is_empty());
        reader.commit(&Outcome::default()).await.unwrap();
        desk.emit("17", 1).await;
        let page = reader.page(crate::publishing::desk::ALL).await.unwrap();
        assert_eq!(
            page.events.iter().map(|event| event.sequence).collect::<Vec<_>>(),
            [n],
            "without balancing the slots again"
        );
        reader.commit(&Outcome::default()).await.unwrap();
    }
}

pub(crate) async fn only_what_a_subscription_wants_is_published(desk: Desk) {
    for (aggregate_type, event_type) in [("order", "paid"), ("order", "sent"), ("account", "paid")] {
        let aggregate = Aggregate::new(aggregate_type, "1");
        for _ in 0..50 {
            desk.store.emit(&NewEvent::new(aggregate.clone(), event_type, &()).unwrap()).await.unwrap();
        }
    }
    let mut wanted = options("s");
    wanted.subscription.filter.aggregate_types = vec!["order".to_owned()];
    wanted.subscription.filter.event_types = vec!["paid".to_owned(), "closed".to_owned()];
    wanted.page.events_max = 64;
    let running = desk.run(wanted);
    desk.until_taken(50).await;
    running.stop().await;
    assert!(desk.sink.taken().iter().all(|e| e.aggregate.kind == "order" && e.event_type == "paid"));
}

pub(crate) async fn what_a_subscription_leaves_out_is_counted_with_its_types(desk: Desk) {
    desk.emit_of("order", 7, 300).await;
    desk.emit_of("account", 7, 200).await;
    let wants = async |aggregate_type: &str| {
        let aggregate_types = vec![aggregate_type.to_owned()];
        let filter = SubscriptionFilter { aggregate_types, ..SubscriptionFilter::default() };
        let lease = Duration::from_secs(60);
        let (_, mut reader) = desk.reader_of(aggregate_type, lease, filter).await;
        reader.balance().await.unwrap();
        let (mut wanted, mut left_out) = (0, LeftOut::default());
        loop {
            let page = reader.page(PageSize { events_max: 64, ..ALL }).await.unwrap();
            let over = page.events.is_empty() && !page.more;
            wanted += page.events.len();
            left_out.join(page.left_out);
            reader.commit(&Outcome::default()).await.unwrap();
            if over {
                return (wanted, left_out.events, left_out.types.into_iter().collect::<Vec<_>>());
            }
        }
    };
    let types = |of: &str| (of.to_owned(), "order.changed".to_owned());
    assert_eq!(wants("account").await, (200, 300, vec![types("order")]));
    assert_eq!(wants("acount").await, (0, 500, vec![types("account"), types("order")]));
}

pub(crate) async fn a_subscription_that_begins_now_gets_what_comes(desk: Desk) {
    desk.emit("1", 10).await;
    let now = || PublisherOptions { begin: Begin::Now, ..options("s") };
    assert!(desk.store.subscribe("s", Begin::Now).await.unwrap());
    desk.emit("1", 3).await;
    assert!(!desk.store.subscribe("s", Begin::Now).await.unwrap());
    let running = desk.run(now());
    desk.until_taken(3).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), [11, 12, 13]);
    desk.emit("1", 1).await;
    let running = desk.run(now());
    desk.until_taken(4).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), [11, 12, 13, 14], "the start position applies only once");
}

pub(crate) async fn two_subscriptions_each_have_a_position(desk: Desk) {
    desk.emit_mixed(5, 100).await;
    let other = Script::new();
    let first = desk.run(options("a"));
    desk.until_taken(100).await;
    let second = desk.run_into(options("b"), Arc::new(other.clone()));
    milepost_testkit::wait::until("the other sink has all events", || async { other.distinct() == 100 })
        .await;
    first.stop().await;
    second.stop().await;
    assert_eq!((desk.sink.taken().len(), other.taken().len()), (100, 100));
}

pub(crate) async fn what_was_answered_is_not_published_again_after_a_restart(desk: Desk) {
    for round in 1..=5 {
        desk.emit_mixed(9, 100).await;
        let running = desk.run(options("s"));
        desk.until_taken(round * 100).await;
        running.stop().await;
    }
    assert_eq!(desk.sink.taken().len(), 500);
}

pub(crate) async fn pages_of_one_event_are_published_too(desk: Desk) {
    desk.emit_mixed(3, 60).await;
    let mut small = options("s");
    small.page.events_max = 1;
    let running = desk.run(small);
    desk.until_taken(60).await;
    running.stop().await;
    assert_eq!(desk.sink.taken().len(), 60);
    assert_eq!(desk.sink.firsts("1"), up_to(20));
}

pub(crate) async fn large_payloads_are_read_in_small_pages(desk: Desk) {
    // Random text, because compressible text would take little space.
    for _ in 0..12 {
        let noise: String = (0..100_000).map(|_| fastrand::alphanumeric()).collect();
        let event = NewEvent::new(Aggregate::new("order", "1"), "order.changed", &noise).unwrap();
        desk.store.emit(&event).await.unwrap();
    }
    let (_, mut reader) = desk.reader("r", Duration::from_secs(60)).await;
    reader.balance().await.unwrap();
    let mut size = crate::publishing::desk::ALL;
    size.bytes_max = 64 * 150_000;
    let page = reader.page(size).await.unwrap();
    assert!((1..12).contains(&page.events.len()) || page.events.len() == 12, "{}", page.events.len());
    let mut small = options("s");
    small.page.bytes_max = 1;
    let running = desk.run(small);
    desk.until_taken(12).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), up_to(12));
}

pub(crate) async fn payloads_that_the_database_compresses_count_by_their_text(desk: Desk) {
    let long = "x".repeat(500_000);
    for payload in std::iter::repeat_n(long.as_str(), 12).chain(["short"]) {
        let event = NewEvent::new(Aggregate::new("order", "1"), "order.changed", &payload).unwrap();
        desk.store.emit(&event).await.unwrap();
    }
    let (_, mut reader) = desk.reader("r", Duration::from_secs(60)).await;
    reader.balance().await.unwrap();
    let size = PageSize { events_max: 1_000, bytes_max: 1_600_000 };
    let page = reader.page(size).await.unwrap();
    // The first payload beyond the limit ends the page.
    assert!((1..=4).contains(&page.events.len()), "{}", page.events.len());
    let mut small = options("s");
    small.page = size;
    let running = desk.run(small);
    desk.until_taken(13).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), up_to(13));
}
