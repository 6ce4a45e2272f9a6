//! Publishers that start work, whose PostgreSQL connection breaks at each of its messages, or whose database was restored.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use milepost_core::port::{Store, SubscriptionStore};
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use milepost_testkit::proxy::{Moment, Proxy};
use milepost_testkit::wait;
use sqlx::Executor;

use crate::publishing::desk::{Desk, options};
use crate::publishing::work::{assert_one_job_for_each, bills, until_started};

/// How many publishers share a database.
const CUTS_PER_DATABASE: usize = 12;

/// Starts the work of twenty events while the connection breaks once. Returns whether it was cut.
async fn start_with_a_cut(
    database: &Database,
    direct: &Arc<dyn Store>,
    request: usize,
    moment: Moment,
) -> bool {
    let (proxy, url) = Proxy::for_url(&database.url()).await;
    proxy.cut("milepost", request, moment);
    let store_options =
        PostgresOptions { connections_max: 3, wake: WakeMode::Poll, ..PostgresOptions::default() };
    let Ok(store) = PostgresStore::connect(&url, store_options).await else {
        // One of the first messages was cut, before the publisher could start.
        return true;
    };
    let kind = format!("bill-{request}-{moment:?}");
    Desk::new(direct.clone()).emit_of(&kind, 5, 20).await;
    let mut settings = options(&kind);
    settings.subscription.filter.aggregate_types = vec![kind.clone()];
    settings.poll_interval = Duration::from_millis(20);
    settings.lease = Duration::from_secs(5);
    settings.page.events_max = 64;
    let running = Desk::new(Arc::new(store)).run_to(settings, bills(&kind));
    until_started(direct, &kind, 20).await;
    let has_cut = proxy.has_cut();
    running.stop().await;
    assert_one_job_for_each(direct, &kind, 5, 4).await;
    has_cut
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_message_starts_each_event_once() {
    for moment in [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply] {
        let mut reached = 0;
        for first in (0..72).step_by(CUTS_PER_DATABASE) {
            let (database, store) = Database::with_store().await;
            let (database, direct): (_, &Arc<dyn Store>) = (&database, &(Arc::new(store) as _));
            let cuts = stream::iter(first..first + CUTS_PER_DATABASE)
                .map(|request| start_with_a_cut(database, direct, request, moment))
                .buffered(8)
                .take_while(|cut| std::future::ready(*cut))
                .count()
                .await;
            reached += cuts;
            if cuts < CUTS_PER_DATABASE {
                break;
            }
        }
        // Subscribing, balancing, pages and transactions of several statements need more messages than this.
        assert!(reached > 20, "{moment:?}: {reached} messages were cut");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_read_again_after_a_restore_start_nothing_again() {
    let (_database, store) = Database::with_store().await;
    let desk = Desk::new(Arc::new(store.clone()));
    desk.emit_mixed(5, 20).await;
    let running = desk.run_to(options("s"), bills("bill"));
    until_started(&desk.store, "bill", 20).await;
    running.stop().await;
    // The log of another server, on which the subscription has not passed anything.
    store.pool().execute("update milepost.subscription set log_identity = log_identity + 1").await.unwrap();
    store
        .pool()
        .execute("update milepost.slot_position set seen = '1:1:', floor = 0, pos = 0")
        .await
        .unwrap();
    let running = desk.run_to(options("s"), bills("bill"));
    wait::until("the publisher is there", || async {
        store.subscriptions().await.is_ok_and(|all| all[0].reseed_needed)
    })
    .await;
    assert_eq!(store.reseed().await.unwrap(), 1);
    desk.emit_mixed(5, 5).await;
    until_started(&desk.store, "bill", 25).await;
    running.stop().await;
    assert_one_job_for_each(&desk.store, "bill", 5, 5).await;
}
