//! Metrics of workers.

use milepost_core::stats::{DistributionView, SpreadView, StatsView};

use super::Sample;

/// A counter of a worker.
type Number = fn(&StatsView) -> u64;

const ENDS: [(&str, Number); 5] = [
    ("succeeded", |view| view.succeeded),
    ("retried", |view| view.retried),
    ("failed", |view| view.failed),
    ("yielded", |view| view.yielded),
    ("stopped", |view| view.stopped),
];

const COUNTERS: [(&str, &str, Number); 11] = [
    ("worker_claimed_jobs", "Jobs claimed by this process", |view| view.claimed),
    ("worker_panics", "Handlers that panicked", |view| view.panicked),
    ("worker_fenced_ends", "Ends that were refused because the worker no longer held the job", |view| {
        view.fenced
    }),
    ("worker_repeated_ends", "Ends that had been stored before, because a response was lost", |view| {
        view.repeated
    }),
    ("worker_adopted_jobs", "Jobs held although the response to their claim was lost", |view| view.adopted),
    ("worker_rescued_jobs", "Jobs of dead workers that this process took back", |view| view.rescued),
    ("worker_ticked_jobs", "Jobs that ticks of schedules created in this process", |view| view.ticked),
    ("worker_pruned_jobs", "Jobs deleted by this process after their retention period", |view| view.pruned),
    ("worker_pruned_dead_letters", "Failed jobs among the deleted ones", |view| view.dead_letters_pruned),
    ("worker_pruned_inbox_dead_letters", "Dead letters of inboxes deleted by this process", |view| {
        view.inbox_dead_pruned
    }),
    ("worker_leases_lost", "Number of lost leases", |view| view.leases_lost),
];

/// Returns the metrics of one worker, or of all workers that use the worker protocol. Counts of several workers add up.
#[must_use]
pub fn samples(view: &StatsView, spread: &SpreadView) -> Vec<Sample> {
    let runs = ENDS.into_iter().map(|(outcome, of)| {
        Sample::counter("worker_runs", "Runs that ended in this process, by outcome", of(view))
            .of("outcome", outcome)
    });
    let mut samples: Vec<Sample> = runs.collect();
    samples.extend(COUNTERS.into_iter().map(|(name, help, of)| Sample::counter(name, help, of(view))));
    if let Some(up) = view.coordination_up {
        let up = f64::from(u8::from(up));
        samples.push(Sample::gauge(
            "coordination_up",
            "Whether the helper beside the store (Redis) responds",
            up,
        ));
        let failures = view.coordination_failures;
        samples.push(Sample::counter(
            "coordination_failures",
            "Failed calls of the helper beside the store",
            failures,
        ));
    }
    samples.extend(spreads(spread));
    samples
}

fn spreads(spread: &SpreadView) -> Vec<Sample> {
    let sample = |name, help, spread: &DistributionView| {
        Sample::histogram(name, help, spread.bounds, &spread.counts, spread.sum)
    };
    let mut samples = vec![
        sample("worker_claim_jobs", "Jobs per claim that returned any", &spread.claim_jobs),
        sample("worker_end_jobs", "Ends reported in one request to the store", &spread.end_jobs),
    ];
    samples.extend(spread.wait_s.iter().map(|((queue, kind), waited)| {
        sample(
            "job_wait_seconds",
            "Time from when jobs could be claimed until they were, by queue and kind",
            waited,
        )
        .of("queue", queue.as_str())
        .of("kind", kind.as_str())
    }));
    samples.extend(spread.run_s.iter().map(|(kind, took)| {
        sample("worker_run_seconds", "Run time of handlers, by kind", took).of("kind", kind.as_str())
    }));
    samples
}
