//! Metrics that this process counts itself, for `/metrics`.

use std::sync::Arc;

use milepost::WorkerCounters;
use milepost_cli_support::store::Database;
use milepost_core::pool::PoolView;
use milepost_relay::publisher::PublisherStats;
use milepost_server::metrics::{Counts, Sample, work};

/// The metrics of workers.
pub(super) struct WorkerNumbers(pub(super) Vec<WorkerCounters>);

impl Counts for WorkerNumbers {
    fn samples(&self) -> Vec<Sample> {
        self.0.iter().flat_map(|its| work::samples(&its.view(), &its.spread())).collect()
    }
}

/// The metrics of publishers, each with the name of its subscription.
pub(super) struct PublisherNumbers(pub(super) Vec<(String, Arc<PublisherStats>)>);

impl Counts for PublisherNumbers {
    fn samples(&self) -> Vec<Sample> {
        self.0.iter().flat_map(|(subscription, stats)| of_publisher(subscription, stats)).collect()
    }
}

fn of_publisher(subscription: &str, stats: &PublisherStats) -> [Sample; 6] {
    let view = stats.view();
    [
        Sample::counter("relay_published_events", "Events that the sink acknowledged", view.published),
        Sample::counter("relay_failed_deliveries", "Deliveries that failed", view.failed),
        Sample::counter("relay_dead_lettered_events", "Events dead-lettered by this process", view.dead),
        Sample::counter("relay_skipped_events", "Events skipped by this process", view.skipped),
        Sample::counter("relay_takeovers", "Slots taken over from silent publishers", view.taken_over),
        Sample::counter("relay_pages", "Pages of the log that were published", view.pages),
    ]
    .map(|sample| sample.of("subscription", subscription))
}

/// The metrics of the store's connection pools.
pub(super) struct PoolNumbers(pub(super) Database);

impl Counts for PoolNumbers {
    fn samples(&self) -> Vec<Sample> {
        self.0.pools().into_iter().flat_map(of_pool).collect()
    }
}

fn of_pool(pool: PoolView) -> [Sample; 4] {
    let open = |state: &str, connections: u32| {
        let help = "Connections to the database, by purpose and use";
        Sample::gauge("pool_connections", help, f64::from(connections))
            .of("pool", pool.name)
            .of("state", state)
    };
    [
        open("in_use", pool.in_use),
        open("idle", pool.idle),
        Sample::gauge("pool_connections_max", "Maximum number of these connections", f64::from(pool.max))
            .of("pool", pool.name),
        Sample::counter(
            "pool_waits",
            "Number of times that a caller waited because all of these were in use",
            pool.waits,
        )
        .of("pool", pool.name),
    ]
}
