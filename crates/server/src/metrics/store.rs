//! Metrics of the store, for all nodes.

use jiff::Timestamp;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::dag::state::BatchState;
use milepost_core::error::StoreError;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::listing::QueueKinds;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::sample::Sample;
use crate::store_timeout::in_time;

/// Maximum number of kinds with separate metrics: those with the most jobs. All others are reported with an empty kind, so that
/// an unbounded number of kinds (such as names that contain ids) does not make an unbounded response.
pub(crate) const KINDS_MAX: u32 = 200;
/// Maximum number of bulk jobs that are counted; running and waiting ones come first.
const BULKS_MAX: u32 = 1000;
/// The states of unfinished bulk jobs.
const OPEN: [JobState; 6] = [
    JobState::Running,
    JobState::Pending,
    JobState::Blocked,
    JobState::RetryWait,
    JobState::Failed,
    JobState::Aborted,
];

/// Checks whether the store responds. The query uses the connections for access control, so it succeeds even while long list
/// queries use the others.
pub(super) async fn is_up(store: &dyn Store) -> Result<(), StoreError> {
    in_time(store.has_tokens()).await.map(drop)
}

/// Reads all metrics from the store.
pub(super) async fn samples(store: &dyn Store) -> Result<Vec<Sample>, StoreError> {
    // The cheapest query first: if the store has no time for it, the others are not sent.
    let workers = in_time(store.workers()).await?;
    let now = Timestamp::now();
    let mut all = of_queues(&store.queues_by_kind(KINDS_MAX).await?, now);
    all.extend(of_workers(&workers));
    all.extend(of_batches(&store.count_batches().await?));
    all.extend(
        store.subscriptions().await?.iter().flat_map(|subscription| of_subscription(subscription, now)),
    );
    all.extend(store.consumers().await?.iter().flat_map(of_consumer));
    all.extend(of_bulks(&store.bulks(&BulkFilter { limit: BULKS_MAX, ..BulkFilter::default() }).await?));
    Ok(all)
}

fn of_queues(queues: &[QueueKinds], now: Timestamp) -> Vec<Sample> {
    let jobs = queues.iter().flat_map(|queue| {
        queue.counts.iter().map(|count| {
            Sample::gauge("jobs", "Unfinished and failed jobs, by queue, kind and state", count.jobs as f64)
                .of("queue", &queue.name)
                .of("kind", count.kind.as_deref().unwrap_or_default())
                .of("state", count.state.as_str())
        })
    });
    let due = queues.iter().map(|queue| {
        let due: i64 = queue.counts.iter().map(|count| count.due).sum();
        Sample::gauge("jobs_due", "Jobs that are due and not claimed", due as f64).of("queue", &queue.name)
    });
    let oldest = queues.iter().map(|queue| {
        let age_s = queue.oldest_due_at().map_or(0.0, |at| seconds_since(at, now));
        Sample::gauge("queue_backlog_age_seconds", "How long the oldest due job has been due", age_s)
            .of("queue", &queue.name)
    });
    let paused = queues.iter().map(|queue| {
        let paused = f64::from(u8::from(queue.paused_at.is_some()));
        Sample::gauge("queue_paused", "Whether the queue is paused", paused).of("queue", &queue.name)
    });
    jobs.chain(due).chain(oldest).chain(paused).collect()
}

fn of_batches(counts: &[(BatchState, i64)]) -> impl Iterator<Item = Sample> {
    BatchState::ALL.iter().map(|state| {
        let count = counts.iter().find(|(its, _)| its == state).map_or(0, |(_, count)| *count);
        Sample::gauge("batches", "Batches by state", count as f64).of("state", state.as_str())
    })
}

fn of_workers(workers: &[WorkerView]) -> [Sample; 2] {
    let alive = || workers.iter().filter(|worker| worker.is_active() && worker.runs_jobs());
    let held: i64 = alive().map(|worker| worker.running).sum();
    [
        Sample::gauge("workers", "Active workers", alive().count() as f64),
        Sample::gauge("workers_hold_jobs", "Jobs that active workers hold", held as f64),
    ]
}

fn of_subscription(subscription: &SubscriptionView, now: Timestamp) -> Vec<Sample> {
    let age_s = subscription.oldest_at.map_or(0.0, |at| seconds_since(at, now));
    let gauge =
        |name, help, value: f64| Sample::gauge(name, help, value).of("subscription", &subscription.name);
    let mut samples = vec![
        gauge(
            "relay_backlog_events",
            "Events after the position of the subscription",
            subscription.backlog as f64,
        ),
        gauge("relay_backlog_age_seconds", "Age of the oldest event in the backlog", age_s),
        gauge(
            "relay_paused",
            "Whether the subscription is paused",
            f64::from(u8::from(subscription.paused_at.is_some())),
        ),
        gauge(
            "relay_reseed_needed",
            "Whether the positions of the subscription were stored in another database",
            f64::from(u8::from(subscription.reseed_needed)),
        ),
        gauge(
            "relay_parked_aggregates",
            "Aggregates that are held back after a failure",
            subscription.parked_aggregates as f64,
        ),
        gauge(
            "relay_halted_aggregates",
            "Parked aggregates that wait for an operator",
            subscription.halted_aggregates as f64,
        ),
        gauge("relay_dead_events", "Dead letters of the subscription", subscription.dead as f64),
        gauge("relay_publishers", "Active publishers", subscription.publishers.len() as f64),
    ];
    for publisher in &subscription.publishers {
        let gauge = |name, help, value: f64| gauge(name, help, value).of("publisher", &publisher.label);
        samples.push(gauge(
            "relay_slots",
            "Slots of the log that the publisher holds",
            publisher.slots as f64,
        ));
        samples.push(gauge(
            "relay_slot_token",
            "The highest token of these slots",
            publisher.token.unwrap_or_default() as f64,
        ));
        samples.push(gauge(
            "relay_slot_held_seconds",
            "Average time for which the publisher has held its slots",
            publisher.held_since.map_or(0.0, |at| seconds_since(at, now)),
        ));
        samples.push(gauge(
            "relay_sink_down",
            "Whether the publisher's sink is down",
            f64::from(u8::from(subscription.is_down(publisher))),
        ));
    }
    samples
}

fn of_consumer(view: &ConsumerView) -> [Sample; 4] {
    let consumer = &view.consumer.name;
    [
        Sample::gauge(
            "inbox_aggregates",
            "Aggregates whose events the consumer processes",
            view.aggregates as f64,
        ),
        Sample::gauge("inbox_parked_events", "Events that wait for an earlier event", view.parked as f64),
        Sample::gauge("inbox_dead_letters", "Dead letters of the inbox", view.dead as f64),
        Sample::counter("inbox_duplicates", "Duplicates that were detected", view.duplicates),
    ]
    .map(|sample| sample.of("consumer", consumer))
}

fn of_bulks(bulks: &[BulkView]) -> Vec<Sample> {
    let in_state = |state: JobState| bulks.iter().filter(move |bulk| bulk.state == state);
    let mut samples: Vec<Sample> = OPEN
        .into_iter()
        .map(|state| {
            Sample::gauge("bulk_jobs", "Unfinished bulk jobs, by state", in_state(state).count() as f64)
                .of("state", state.as_str())
        })
        .collect();
    let sum = |of: fn(&BulkView) -> u64| in_state(JobState::Running).map(of).sum::<u64>() as f64;
    samples.push(Sample::gauge(
        "bulk_rows_done",
        "Targets done by running bulk jobs",
        sum(|bulk| bulk.counts.done),
    ));
    samples.push(Sample::gauge(
        "bulk_rows_failed",
        "Targets that failed in running bulk jobs",
        sum(|bulk| bulk.counts.failed),
    ));
    samples
}

fn seconds_since(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64().max(0.0)
}
