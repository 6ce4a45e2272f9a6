//! What the store says of all nodes.

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
use crate::patience::in_time;

/// How many kinds are told of one by one, those that have the most jobs; all others have the empty kind, so that kinds without end
/// (names made of ids, say) make no page without end.
pub(crate) const KINDS_MAX: u32 = 200;
/// How many bulk jobs are counted: those that run or wait come first.
const BULKS_MAX: u32 = 1000;
/// What bulk jobs that are not over are in.
const OPEN: [JobState; 6] = [
    JobState::Running,
    JobState::Pending,
    JobState::Blocked,
    JobState::RetryWait,
    JobState::Failed,
    JobState::Aborted,
];

/// Whether the store answers. Its connections for this are those of requests for access: one that is busy with long lists does, too.
pub(super) async fn is_up(store: &dyn Store) -> Result<(), StoreError> {
    in_time(store.has_tokens()).await.map(drop)
}

/// Asks the store for all its numbers.
pub(super) async fn samples(store: &dyn Store) -> Result<Vec<Sample>, StoreError> {
    // The easiest first: one that has no time for it is left alone with the others.
    let workers = in_time(store.workers()).await?;
    let mut all = of_queues(&store.queues_by_kind(KINDS_MAX).await?);
    all.extend(of_workers(&workers));
    all.extend(of_batches(&store.count_batches().await?));
    let now = Timestamp::now();
    all.extend(
        store.subscriptions().await?.iter().flat_map(|subscription| of_subscription(subscription, now)),
    );
    all.extend(store.consumers().await?.iter().flat_map(of_consumer));
    all.extend(of_bulks(&store.bulks(&BulkFilter { limit: BULKS_MAX, ..BulkFilter::default() }).await?));
    Ok(all)
}

fn of_queues(queues: &[QueueKinds]) -> Vec<Sample> {
    let jobs = queues.iter().flat_map(|queue| {
        queue.counts.iter().map(|count| {
            Sample::gauge("jobs", "Jobs that need attention, by queue, kind and state", count.jobs as f64)
                .of("queue", &queue.name)
                .of("kind", count.kind.as_deref().unwrap_or_default())
                .of("state", count.state.as_str())
        })
    });
    let due = queues.iter().map(|queue| {
        let due: i64 = queue.counts.iter().map(|count| count.due).sum();
        Sample::gauge("jobs_due", "Jobs whose time has come, and which nobody has claimed", due as f64)
            .of("queue", &queue.name)
    });
    let paused = queues.iter().map(|queue| {
        let paused = f64::from(u8::from(queue.paused_at.is_some()));
        Sample::gauge("queue_paused", "Whether nothing is claimed from the queue", paused)
            .of("queue", &queue.name)
    });
    jobs.chain(due).chain(paused).collect()
}

fn of_batches(counts: &[(BatchState, i64)]) -> impl Iterator<Item = Sample> {
    BatchState::ALL.iter().map(|state| {
        let count = counts.iter().find(|(its, _)| its == state).map_or(0, |(_, count)| *count);
        Sample::gauge("batches", "Batches by state", count as f64).of("state", state.as_str())
    })
}

fn of_workers(workers: &[WorkerView]) -> [Sample; 2] {
    let alive = || workers.iter().filter(|worker| worker.ended_at.is_none() && worker.runs_jobs());
    let held: i64 = alive().map(|worker| worker.running).sum();
    [
        Sample::gauge("workers", "Workers that live", alive().count() as f64),
        Sample::gauge("workers_hold_jobs", "Jobs that living workers hold", held as f64),
    ]
}

fn of_subscription(subscription: &SubscriptionView, now: Timestamp) -> Vec<Sample> {
    let age_s = subscription.oldest_at.map_or(0.0, |at| seconds_since(at, now));
    let gauge =
        |name, help, value: f64| Sample::gauge(name, help, value).of("subscription", &subscription.name);
    let mut samples = vec![
        gauge(
            "relay_backlog_events",
            "Events that the subscription has not gone past",
            subscription.backlog as f64,
        ),
        gauge("relay_backlog_age_seconds", "Age of the oldest of these", age_s),
        gauge(
            "relay_paused",
            "Whether the subscription is paused",
            f64::from(u8::from(subscription.paused_at.is_some())),
        ),
        gauge(
            "relay_parked_aggregates",
            "Aggregates that are held back after a failure",
            subscription.parked_aggregates as f64,
        ),
        gauge(
            "relay_halted_aggregates",
            "Those of them that wait for a person",
            subscription.halted_aggregates as f64,
        ),
        gauge("relay_dead_events", "Events that were given up", subscription.dead as f64),
        gauge("relay_publishers", "Publishers that live", subscription.publishers.len() as f64),
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
            "The highest token of these",
            publisher.token.unwrap_or_default() as f64,
        ));
        samples.push(gauge(
            "relay_slot_held_seconds",
            "For how long it has held them, on average",
            publisher.held_since.map_or(0.0, |at| seconds_since(at, now)),
        ));
        samples.push(gauge(
            "relay_sink_down",
            "Whether the publisher's sink takes nothing",
            f64::from(u8::from(publisher.down_since.is_some())),
        ));
    }
    samples
}

fn of_consumer(view: &ConsumerView) -> [Sample; 4] {
    let consumer = &view.consumer.name;
    [
        Sample::gauge(
            "inbox_aggregates",
            "Aggregates that the consumer takes events of",
            view.aggregates as f64,
        ),
        Sample::gauge("inbox_parked_events", "Events that wait for one before them", view.parked as f64),
        Sample::gauge("inbox_dead_letters", "What was given up", view.dead as f64),
        Sample::counter("inbox_duplicates", "Duplicates that were caught", view.duplicates),
    ]
    .map(|sample| sample.of("consumer", consumer))
}

fn of_bulks(bulks: &[BulkView]) -> Vec<Sample> {
    let in_state = |state: JobState| bulks.iter().filter(move |bulk| bulk.state == state);
    let mut samples: Vec<Sample> = OPEN
        .into_iter()
        .map(|state| {
            Sample::gauge(
                "bulk_jobs",
                "Bulk jobs that are not over, by state",
                in_state(state).count() as f64,
            )
            .of("state", state.as_str())
        })
        .collect();
    let sum = |of: fn(&BulkView) -> u64| in_state(JobState::Running).map(of).sum::<u64>() as f64;
    samples.push(Sample::gauge(
        "bulk_rows_done",
        "Targets that running bulk jobs have done",
        sum(|bulk| bulk.counts.done),
    ));
    samples.push(Sample::gauge(
        "bulk_rows_failed",
        "Targets of these that failed",
        sum(|bulk| bulk.counts.failed),
    ));
    samples
}

fn seconds_since(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64().max(0.0)
}
