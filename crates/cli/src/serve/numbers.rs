//! What this process counts itself, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;

use milepost::{DistributionView, SpreadView, StatsView, WorkerCounters};
use milepost_core::pool::PoolView;
use milepost_relay::publisher::PublisherStats;
use milepost_server::metrics::{Counts, Sample};

use crate::store::Database;

/// One of a worker's numbers.
type Number = fn(&StatsView) -> u64;

/// The workers' numbers, added up.
pub(super) struct WorkerNumbers(pub(super) Vec<WorkerCounters>);

impl Counts for WorkerNumbers {
    fn samples(&self) -> Vec<Sample> {
        let views: Vec<StatsView> = self.0.iter().map(WorkerCounters::view).collect();
        let sum = |of: Number| views.iter().map(of).sum::<u64>();
        let ends: [(&str, Number); 5] = [
            ("succeeded", |view| view.succeeded),
            ("retried", |view| view.retried),
            ("failed", |view| view.failed),
            ("yielded", |view| view.yielded),
            ("stopped", |view| view.stopped),
        ];
        let runs = ends.into_iter().map(|(outcome, of)| {
            Sample::counter("worker_runs", "Runs that ended here, by outcome", sum(of)).of("outcome", outcome)
        });
        let mut samples: Vec<Sample> = runs.collect();
        let counters: [(&'static str, &'static str, Number); 9] = [
            ("worker_claimed_jobs", "Jobs claimed here", |view| view.claimed),
            ("worker_panics", "Handlers that panicked", |view| view.panicked),
            ("worker_fenced_ends", "Ends that came too late: the job had moved on", |view| view.fenced),
            ("worker_repeated_ends", "Ends that had been stored before: an answer was lost", |view| {
                view.repeated
            }),
            ("worker_adopted_jobs", "Jobs held although the answer to their claim was lost", |view| {
                view.adopted
            }),
            ("worker_rescued_jobs", "Jobs taken back here from dead workers", |view| view.rescued),
            ("worker_ticked_jobs", "Jobs that ticks of schedules made here", |view| view.ticked),
            ("worker_pruned_jobs", "Jobs forgotten here, their retention being over", |view| view.pruned),
            ("worker_leases_lost", "Times that a lease was lost", |view| view.leases_lost),
        ];
        samples.extend(counters.into_iter().map(|(name, help, of)| Sample::counter(name, help, sum(of))));
        if let Some(up) = views.iter().find_map(|view| view.coordination_up) {
            let up = f64::from(u8::from(up));
            samples.push(Sample::gauge("coordination_up", "Whether the helper beside the store answers", up));
            let failures = sum(|view| view.coordination_failures);
            samples.push(Sample::counter("coordination_failures", "Calls of it that failed", failures));
        }
        samples.extend(spreads(self.0.iter().map(WorkerCounters::spread)));
        samples
    }
}

/// How the workers' numbers are spread, added up.
fn spreads(workers: impl Iterator<Item = SpreadView>) -> Vec<Sample> {
    let (mut claims, mut ends) = (DistributionView::default(), DistributionView::default());
    let mut waits: BTreeMap<(String, String), DistributionView> = BTreeMap::new();
    let mut runs: BTreeMap<String, DistributionView> = BTreeMap::new();
    for worker in workers {
        claims.add(&worker.claim_jobs);
        ends.add(&worker.end_jobs);
        for (lane, waited) in worker.wait_s {
            waits.entry(lane).or_default().add(&waited);
        }
        for (kind, took) in worker.run_s {
            runs.entry(kind).or_default().add(&took);
        }
    }
    let sample = |name, help, spread: &DistributionView| {
        Sample::histogram(name, help, spread.bounds, &spread.counts, spread.sum)
    };
    let mut samples = vec![
        sample("worker_claim_jobs", "Jobs of a claim that brought some", &claims),
        sample("worker_end_jobs", "Ends that were told at once", &ends),
    ];
    samples.extend(waits.iter().map(|((queue, kind), waited)| {
        sample(
            "job_wait_seconds",
            "How long jobs could have been claimed before they were, by queue and kind",
            waited,
        )
        .of("queue", queue.as_str())
        .of("kind", kind.as_str())
    }));
    samples.extend(runs.iter().map(|(kind, took)| {
        sample("worker_run_seconds", "How long handlers took, by kind", took).of("kind", kind.as_str())
    }));
    samples
}

/// The numbers of publishers, each with the name of its subscription.
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
        Sample::counter("relay_dead_lettered_events", "Events that were given up here", view.dead),
        Sample::counter("relay_skipped_events", "Events that were skipped here", view.skipped),
        Sample::counter("relay_takeovers", "Slots taken over from silent publishers", view.taken_over),
        Sample::counter("relay_pages", "Pages of the log that were published", view.pages),
    ]
    .map(|sample| sample.of("subscription", subscription))
}

/// How the store's connections are used.
pub(super) struct PoolNumbers(pub(super) Database);

impl Counts for PoolNumbers {
    fn samples(&self) -> Vec<Sample> {
        self.0.pools().into_iter().flat_map(of_pool).collect()
    }
}

fn of_pool(pool: PoolView) -> [Sample; 4] {
    let open = |state: &str, connections: u32| {
        let help = "Connections to the database, by what they are for and whether they are used";
        Sample::gauge("pool_connections", help, f64::from(connections))
            .of("pool", pool.name)
            .of("state", state)
    };
    [
        open("in_use", pool.in_use),
        open("idle", pool.idle),
        Sample::gauge("pool_connections_max", "How many of these may be open", f64::from(pool.max))
            .of("pool", pool.name),
        Sample::counter(
            "pool_waits",
            "Times that all of these were in use and one was waited for",
            pool.waits,
        )
        .of("pool", pool.name),
    ]
}
