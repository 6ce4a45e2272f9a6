//! What workers count, as numbers of `/metrics`.

use milepost_core::stats::{DistributionView, SpreadView, StatsView};

use super::Sample;

/// One of a worker's numbers.
type Number = fn(&StatsView) -> u64;

const ENDS: [(&str, Number); 5] = [
    ("succeeded", |view| view.succeeded),
    ("retried", |view| view.retried),
    ("failed", |view| view.failed),
    ("yielded", |view| view.yielded),
    ("stopped", |view| view.stopped),
];

const COUNTERS: [(&str, &str, Number); 11] = [
    ("worker_claimed_jobs", "Jobs claimed here", |view| view.claimed),
    ("worker_panics", "Handlers that panicked", |view| view.panicked),
    ("worker_fenced_ends", "Ends that came too late: the job had moved on", |view| view.fenced),
    ("worker_repeated_ends", "Ends that had been stored before: an answer was lost", |view| view.repeated),
    ("worker_adopted_jobs", "Jobs held although the answer to their claim was lost", |view| view.adopted),
    ("worker_rescued_jobs", "Jobs taken back here from dead workers", |view| view.rescued),
    ("worker_ticked_jobs", "Jobs that ticks of schedules made here", |view| view.ticked),
    ("worker_pruned_jobs", "Jobs forgotten here, their retention being over", |view| view.pruned),
    ("worker_pruned_dead_letters", "Failed jobs among them", |view| view.dead_letters_pruned),
    ("worker_pruned_inbox_dead_letters", "Dead letters of inboxes forgotten here", |view| {
        view.inbox_dead_pruned
    }),
    ("worker_leases_lost", "Times that a lease was lost", |view| view.leases_lost),
];

/// The numbers of one worker, or of all that speak to this server; those of several add up.
#[must_use]
pub fn samples(view: &StatsView, spread: &SpreadView) -> Vec<Sample> {
    let runs = ENDS.into_iter().map(|(outcome, of)| {
        Sample::counter("worker_runs", "Runs that ended here, by outcome", of(view)).of("outcome", outcome)
    });
    let mut samples: Vec<Sample> = runs.collect();
    samples.extend(COUNTERS.into_iter().map(|(name, help, of)| Sample::counter(name, help, of(view))));
    if let Some(up) = view.coordination_up {
        let up = f64::from(u8::from(up));
        samples.push(Sample::gauge("coordination_up", "Whether the helper beside the store answers", up));
        let failures = view.coordination_failures;
        samples.push(Sample::counter("coordination_failures", "Calls of it that failed", failures));
    }
    samples.extend(spreads(spread));
    samples
}

fn spreads(spread: &SpreadView) -> Vec<Sample> {
    let sample = |name, help, spread: &DistributionView| {
        Sample::histogram(name, help, spread.bounds, &spread.counts, spread.sum)
    };
    let mut samples = vec![
        sample("worker_claim_jobs", "Jobs of a claim that brought some", &spread.claim_jobs),
        sample("worker_end_jobs", "Ends that were told at once", &spread.end_jobs),
    ];
    samples.extend(spread.wait_s.iter().map(|((queue, kind), waited)| {
        sample(
            "job_wait_seconds",
            "How long jobs could have been claimed before they were, by queue and kind",
            waited,
        )
        .of("queue", queue.as_str())
        .of("kind", kind.as_str())
    }));
    samples.extend(spread.run_s.iter().map(|(kind, took)| {
        sample("worker_run_seconds", "How long handlers took, by kind", took).of("kind", kind.as_str())
    }));
    samples
}
