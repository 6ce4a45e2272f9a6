//! Publishers whose PostgreSQL connection breaks at each of its messages.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use milepost_testkit::proxy::{Moment, Proxy};
use milepost_testkit::wait;

use crate::common::script::Answer;
use crate::publishing::desk::{Desk, options, up_to};

/// Publishes thirty events, one of which fails at first, while the connection breaks once. Returns whether the connection was cut.
async fn publish_with_a_cut(
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
    let name = format!("cut-{request}-{moment:?}");
    let desk = Desk::new(Arc::new(store));
    desk.sink.answer(|e| {
        if e.sequence == 2 && e.aggregate.id.ends_with('3') { Answer::Refuse } else { Answer::Take }
    });
    let emitted = Desk::new(direct.clone());
    emitted.emit_of(&name, 5, 30).await;
    let mut settings = options(&name);
    settings.subscription.filter.aggregate_types = vec![name.clone()];
    settings.poll_interval = Duration::from_millis(20);
    // Long enough to be renewed on a busy machine: a publisher that repeatedly loses its lease publishes nothing.
    settings.lease = Duration::from_secs(5);
    settings.page.events_max = 64;
    let running = desk.run(settings);
    desk.until_taken(30 - 5).await;
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(30).await;
    let has_cut = proxy.has_cut();
    // Not determined from the list of all subscriptions, which finally has hundreds of entries.
    wait::until("all results are stored", async || {
        direct.parked(Some(&name), None, 1).await.unwrap().is_empty()
    })
    .await;
    running.stop().await;
    for (order, sequences) in desk.sink.firsts_of_all() {
        assert_eq!(sequences, up_to(6), "order {order} of {name}");
    }
    has_cut
}

/// How many publishers share a database. Each leaves a subscription, and events that the following ones must skip.
const CUTS_PER_DATABASE: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_message_loses_no_event_and_no_order() {
    for moment in [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply] {
        let mut reached = 0;
        for first in (0..120).step_by(CUTS_PER_DATABASE) {
            let (database, store) = Database::with_store().await;
            let (database, direct): (_, &Arc<dyn Store>) = (&database, &(Arc::new(store) as _));
            let cuts = stream::iter(first..first + CUTS_PER_DATABASE)
                .map(|request| publish_with_a_cut(database, direct, request, moment))
                .buffered(8)
                .take_while(|cut| std::future::ready(*cut))
                .count()
                .await;
            reached += cuts;
            if cuts < CUTS_PER_DATABASE {
                break;
            }
        }
        // Subscribing, balancing, pages, commits and retries need more messages than this.
        assert!(reached > 20, "{moment:?}: {reached} messages were cut");
    }
}
