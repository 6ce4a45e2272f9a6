//! Publishers on a database that was restored from a dump.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::port::SubscriptionStore;
use milepost_relay::publisher::PublisherOptions;
use milepost_testkit::database::Database;
use milepost_testkit::wait;
use sqlx::Executor;

use crate::publishing::desk::{Desk, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_whose_positions_are_of_another_database_waits_for_the_reseed() {
    let (_database, store) = Database::with_store().await;
    let desk = Desk::new(Arc::new(store.clone()));
    desk.emit("1", 1).await;
    let running = desk.run(options("s"));
    desk.until_taken(1).await;
    running.stop().await;
    store.pool().execute("update milepost.subscription set log_identity = log_identity + 1").await.unwrap();
    desk.emit("1", 1).await;
    while store.prune_log(Duration::ZERO).await.unwrap().is_some() {}
    let backlog = store.subscriptions().await.unwrap()[0].backlog;
    assert_eq!(backlog, 1, "positions of another database show nothing about the new event");
    let running = desk.run(options("s"));
    wait::until("the publisher is there", || async {
        store.subscriptions().await.is_ok_and(|all| all[0].reseed_needed)
    })
    .await;
    assert_eq!(store.reseed().await.unwrap(), 1);
    desk.until_taken(2).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_that_ran_during_a_restore_does_not_hinder_the_reseed() {
    let (_database, store) = Database::with_store().await;
    let desk = Desk::new(Arc::new(store.clone()));
    desk.emit("1", 1).await;
    let lease = Duration::from_secs(1);
    let running = desk.run(PublisherOptions { lease, ..options("s") });
    desk.until_taken(1).await;
    store.pool().execute("update milepost.subscription set log_identity = log_identity + 1").await.unwrap();
    desk.emit("1", 1).await;
    wait::until("its lease has ended", || async { store.reseed().await.is_ok() }).await;
    desk.until_taken(2).await;
    running.stop().await;
}
