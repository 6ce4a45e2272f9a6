//! Test of relay processes with a real database and a real broker, while relays and broker fail.

mod broker;
mod relay;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use milepost_core::ident::EventId;
use milepost_core::port::SubscriptionStore;
use milepost_testkit::database::Database;
use milepost_testkit::wait;

use broker::Broker;
use relay::Relay;

/// The number of failures.
const FAILURES: usize = 25;
/// The minimum number of events emitted during the test.
const EVENTS_MIN: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_committed_event_arrives_in_order_while_relays_die_and_freeze_and_the_broker_restarts() {
    let (database, store) = Database::with_store().await;
    let broker = Broker::running().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("milepost.toml");
    std::fs::write(&config, broker.config()).unwrap();
    let mut relays: Vec<Relay> = (0..3).map(|n| Relay::start(&config, &database.url(), n)).collect();

    let writers = writers::start(&database.url());
    for round in 0..FAILURES {
        tokio::time::sleep(Duration::from_millis(600)).await;
        let which = fastrand::usize(..relays.len());
        match round % 5 {
            0 | 2 => relays[which].restart_killed().await,
            1 | 3 => relays[which].freeze(Duration::from_secs(4)),
            _ if round == 9 => broker.restart().await,
            _ => {}
        }
    }
    wait::until("there are many events", || async { writers::log(&store).await.len() > EVENTS_MIN }).await;
    let rolled_back = writers.ended().await;
    relays.iter_mut().for_each(Relay::thaw);

    wait::until_within(3 * wait::LIMIT, "nothing is left to be published", || async {
        let subscriptions = store.subscriptions().await.unwrap();
        subscriptions.iter().all(|s| s.backlog == 0 && s.parked_aggregates == 0)
    })
    .await;
    for relay in relays {
        relay.stop().await;
    }
    assert!(store.dead_events(None, None, 1).await.unwrap().is_empty());

    let logged = writers::log(&store).await;
    assert!(logged.len() > EVENTS_MIN, "{} events are too few", logged.len());
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
    assert!(writers::log(&store).await.is_empty(), "all events were processed");
}
