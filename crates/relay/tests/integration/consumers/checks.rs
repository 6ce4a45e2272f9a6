//! Checks that consumers must pass with every broker.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use milepost_core::event::Event;
use milepost_core::inbox::{Consumer, GapPolicy};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::wait;

use crate::common;
use crate::consumers::broker::{BILLING, Broker};
use crate::consumers::takes::{Running, Takes};

pub(crate) fn history(orders: &[&str], last: i64) -> Vec<Event> {
    let of = |order: &&str| {
        let order = (*order).to_owned();
        (1..=last).map(move |sequence| Event { sequence, ..common::event("order", order.clone(), "{}") })
    };
    orders.iter().flat_map(of).collect()
}

pub(crate) async fn publish(broker: &dyn Broker, events: &[Event]) {
    let sink = broker.sink();
    for event in events {
        common::publish_all(sink.as_ref(), std::slice::from_ref(event)).await;
    }
}

/// Runs consumers until no unacknowledged message is left. Messages that could not be acknowledged are redelivered to the next consumer, which
/// recognizes them.
pub(crate) async fn until_nothing_is_left(broker: &dyn Broker, takes: &Arc<Takes>) {
    takes.fails.store(false, Ordering::SeqCst);
    let (began, mut patience) = (Instant::now(), broker.patience());
    loop {
        let left = broker.left().await;
        if left == 0 {
            return;
        }
        assert!(began.elapsed() < 2 * wait::LIMIT, "{left} messages are left");
        let running = Running::start(broker.runner(None, takes.clone()), takes);
        tokio::time::sleep(patience).await;
        running.stop().await;
        // The wait grows, because the speed of the machine is unknown.
        patience = (patience * 2).min(Duration::from_secs(30));
    }
}

pub(crate) async fn whatever_fails_has_its_effect_once_and_in_order(broker: &dyn Broker) {
    let orders = ["1", "2", "3", "4"];
    let mut events = history(&orders, 12);
    fastrand::shuffle(&mut events);
    publish(broker, &events).await;
    let takes = Takes::new(true).await;
    let runner = broker.runner(None, takes.clone());
    let counts = runner.counts();
    let running = Running::start(runner, &takes);
    wait::until("all events are applied", || async {
        takes.desk.transactions.effects().await.len() == events.len()
    })
    .await;
    for order in orders {
        assert_eq!(takes.effects(order).await, (1..=12).collect::<Vec<_>>(), "order {order}");
    }
    wait::until("all events are acknowledged", || async {
        counts.handled.load(Ordering::Relaxed) >= events.len() as u64
    })
    .await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
    assert_eq!(takes.desk.transactions.effects().await.len(), events.len());
}

pub(crate) async fn a_message_that_is_no_event_holds_up_nothing(broker: &dyn Broker) {
    broker.publish_no_event().await;
    publish(broker, &history(&["1"], 2)).await;
    let takes = Takes::new(false).await;
    let runner = broker.runner(None, takes.clone());
    let counts = runner.counts();
    let running = Running::start(runner, &takes);
    wait::until("the events are applied", || async { counts.handled.load(Ordering::Relaxed) >= 2 }).await;
    running.stop().await;
    // A message whose receipt is late is redelivered.
    let mut malformed = takes.malformed.lock().unwrap().clone();
    malformed.dedup_by(|one, other| (&one.place, &one.body) == (&other.place, &other.body));
    assert_eq!(malformed.len(), 1);
    assert!(!malformed[0].place.contains('@'), "{}", malformed[0].place);
    until_nothing_is_left(broker, &takes).await;
}

pub(crate) async fn one_that_stops_ends_what_it_began_and_gives_back_the_rest(broker: &dyn Broker) {
    let takes = Takes::new(false).await;
    takes.held.store(true, Ordering::SeqCst);
    publish(broker, &history(&["1"], 3)).await;
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    takes.began.notified().await;
    running.stop.cancel();
    takes.held.store(false, Ordering::SeqCst);
    takes.go_on.notify_one();
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1], "only the event in progress was applied");
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    wait::until("the next consumer applies the rest", || async { takes.effects("1").await == [1, 2, 3] })
        .await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
}

pub(crate) async fn a_connection_that_breaks_is_made_anew(broker: &dyn Broker) {
    let proxy = Proxy::before(broker.address()).await;
    let takes = Takes::new(false).await;
    publish(broker, &history(&["1"], 1)).await;
    let address = proxy.address().to_string();
    let running = Running::start(broker.runner(Some(&address), takes.clone()), &takes);
    wait::until("the first event is applied", || async { takes.effects("1").await == [1] }).await;
    proxy.shut(true);
    publish(broker, &history(&["2"], 2)).await;
    proxy.shut(false);
    wait::until("the events published meanwhile are applied", || async {
        takes.effects("2").await == [1, 2]
    })
    .await;
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1]);
    until_nothing_is_left(broker, &takes).await;
}

pub(crate) async fn a_gap_that_is_given_up_is_gone_past_without_a_message(broker: &dyn Broker) {
    let takes = Takes::new(false).await;
    let skips = Consumer {
        gap_wait: Duration::from_millis(100),
        gap_policy: GapPolicy::SkipGap,
        ..Consumer::new(BILLING)
    };
    takes.desk.store.put_consumer(&skips).await.unwrap();
    let mut events = history(&["1"], 4);
    events.remove(1);
    publish(broker, &events).await;
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    wait::until("the events after the gap are applied", || async { takes.effects("1").await == [1, 3, 4] })
        .await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
}
