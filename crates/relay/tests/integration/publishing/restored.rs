//! Publishers on a database that was restored from a dump.

use milepost_core::port::SubscriptionStore;
use milepost_testkit::database::Database;
use milepost_testkit::wait;
use sqlx::Executor;
use std::sync::Arc;

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
    let running = desk.run(options("s"));
    desk.emit("1", 1).await;
    wait::until("the publisher is there", || async {
        store.subscriptions().await.is_ok_and(|all| all[0].reseed_needed)
    })
    .await;
    assert_eq!(store.reseed().await.unwrap(), 1);
    desk.until_taken(2).await;
    running.stop().await;
}
