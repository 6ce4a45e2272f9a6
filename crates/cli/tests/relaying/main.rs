//! Relays as real processes, between a real database and a real broker, while all of them fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod broker;
mod relay;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use milepost_core::ident::EventId;
use milepost_core::port::SubscriptionStore;
use milepost_testkit::database::Database;
use milepost_testkit::wait;
use tokio::time::Instant;

use broker::Broker;
use relay::Relay;

/// How long everything fails.
const CHAOS: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_committed_event_arrives_in_order_while_relays_die_and_freeze_and_the_broker_restarts() {
    let (database, store) = Database::with_store().await;
    let broker = Broker::running().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("milepost.toml");
    std::fs::write(&config, broker.config()).unwrap();
    let mut relays: Vec<Relay> = (0..3).map(|n| Relay::start(&config, &database.url(), n)).collect();

    let until = Instant::now() + CHAOS;
    let writers = writers::start(&database.url(), until);
    let mut rounds = 0;
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let which = fastrand::usize(..relays.len());
        match rounds % 5 {
            0 | 2 => relays[which].restart_killed().await,
            1 | 3 => relays[which].freeze(Duration::from_secs(4)),
            _ if rounds == 9 => broker.restart().await,
            _ => {}
        }
        rounds += 1;
    }
    let rolled_back = writers.ended().await;
    relays.iter_mut().for_each(Relay::thaw);

    wait::until_within(Duration::from_secs(60), "nothing is left to be published", || async {
        let subscriptions = store.subscriptions().await.unwrap();
        subscriptions.iter().all(|s| s.backlog == 0 && s.parked_aggregates == 0)
    })
    .await;
    for relay in relays {
        relay.stop().await;
    }
    assert!(store.dead_events(None, None, 1).await.unwrap().is_empty());

    let logged = writers::log(&store).await;
    assert!(logged.len() > 200, "{} events are few", logged.len());
    let mut seen: BTreeSet<EventId> = BTreeSet::new();
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for message in broker.messages().await {
        assert!(!rolled_back.contains(&message.id), "{message:?} was rolled back");
        assert_eq!(logged.get(&message.id), Some(&(message.aggregate.clone(), message.sequence)));
        if seen.insert(message.id) {
            let last = last.entry(message.aggregate.clone()).or_default();
            assert_eq!(message.sequence, *last + 1, "first come, in order: {message:?}");
            *last = message.sequence;
        }
    }
    assert_eq!(seen.len(), logged.len(), "every committed event arrived");

    while store.prune_log(Duration::ZERO).await.unwrap().is_some() {}
    assert!(writers::log(&store).await.is_empty(), "all of it was gone past");
}
