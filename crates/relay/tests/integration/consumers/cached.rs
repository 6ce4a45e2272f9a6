//! Consumers with a Redis cache of processed events. The cache saves work; correctness does not depend on it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use milepost_core::port::{InboxCache, Remembered};
use milepost_redis::{Redis, RedisOptions};
use milepost_relay::consumer::Counts;
use milepost_testkit::redis::RedisServer;
use milepost_testkit::wait;

use crate::consumers::broker::{BILLING, Broker};
use crate::consumers::checks::{history, publish, until_nothing_is_left};
use crate::consumers::takes::{Running, Takes};

async fn cache(server: &RedisServer) -> Arc<Redis> {
    // A consumer ignores a slow cache. These tests check the cache, so its timeout is long.
    let options = RedisOptions { timeout: wait::LIMIT, ..RedisOptions::default() };
    let cache = Redis::start(&server.url(), options).unwrap();
    assert!(cache.is_up_within(wait::LIMIT).await, "Redis answers");
    Arc::new(cache)
}

fn start(broker: &dyn Broker, takes: &Arc<Takes>, cache: Arc<dyn InboxCache>) -> (Running, Arc<Counts>) {
    let runner = broker.runner(None, takes.clone()).cache(cache, BILLING);
    let counts = runner.counts();
    (Running::start(runner, takes), counts)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_again_is_acknowledged_without_a_handler() {
    // Redis must not redeliver unacknowledged entries during the test: every duplicate here is published by the test.
    let broker = crate::consumers::redis::Redis::make().claim_idle(wait::LIMIT);
    let server = RedisServer::running().await;
    let takes = Takes::new(false).await;
    let (running, counts) = start(&broker, &takes, cache(&server).await);
    let events = history(&["1", "2"], 3);
    publish(&broker, &events).await;
    wait::until("all events are handled", || async { counts.handled.load(Ordering::Relaxed) >= 6 }).await;
    publish(&broker, &events).await;
    wait::until("all events are recognized as duplicates", || async {
        counts.remembered.load(Ordering::Relaxed) >= 6
    })
    .await;
    running.stop().await;
    assert_eq!(counts.handled.load(Ordering::Relaxed), 6);
    let keys = server.keys("milepost:inbox:billing:*").await;
    assert!(
        keys.len() == 6 && keys.contains(&format!("milepost:inbox:billing:{}", events[0].id)),
        "{keys:?}"
    );
    until_nothing_is_left(&broker, &takes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_in_other_hands_waits_until_these_let_go() {
    let (broker, server) = (crate::consumers::redis::Redis::make(), RedisServer::running().await);
    let takes = Takes::new(false).await;
    let other = cache(&server).await;
    let events = history(&["1"], 1);
    assert_eq!(other.recall(BILLING, events[0].id).await, Remembered::Nothing);
    publish(&broker, &events).await;
    let (running, counts) = start(&broker, &takes, cache(&server).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(takes.effects("1").await.is_empty(), "another consumer processes the event");
    other.forget(BILLING, events[0].id).await;
    wait::until("the event is handled", || async { counts.handled.load(Ordering::Relaxed) >= 1 }).await;
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1]);
    until_nothing_is_left(&broker, &takes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_not_taken_for_done() {
    let (broker, server) = (crate::consumers::redis::Redis::make(), RedisServer::running().await);
    let takes = Takes::new(true).await;
    let (running, _) = start(&broker, &takes, cache(&server).await);
    let events = history(&["1", "2", "3", "4"], 12);
    publish(&broker, &events).await;
    let taken = async || takes.desk.transactions.effects().await.len();
    wait::until("all events are applied", || async { taken().await == events.len() }).await;
    running.stop().await;
    until_nothing_is_left(&broker, &takes).await;
    assert_eq!(taken().await, events.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_dies_and_forgets_loses_and_doubles_nothing() {
    let (broker, server) = (crate::consumers::redis::Redis::make(), RedisServer::running().await);
    let orders = ["1", "2", "3", "4"];
    let mut events = history(&orders, 12);
    events.sort_by_key(|event| event.sequence);
    let takes = Takes::new(true).await;
    let (running, _) = start(&broker, &takes, cache(&server).await);
    let (first, rest) = events.split_at(16);
    let taken = async || takes.desk.transactions.effects().await.len();
    publish(&broker, first).await;
    wait::until("some events are applied", || async { taken().await > 3 }).await;
    server.kill().await;
    publish(&broker, rest).await;
    publish(&broker, first).await;
    wait::until("all events are applied", || async { taken().await == events.len() }).await;
    server.start().await;
    publish(&broker, rest).await;
    server.flush().await;
    publish(&broker, &events).await;
    running.stop().await;
    until_nothing_is_left(&broker, &takes).await;
    assert_eq!(taken().await, events.len());
    for order in orders {
        assert_eq!(takes.effects(order).await, (1..=12).collect::<Vec<_>>(), "order {order}");
    }
}
