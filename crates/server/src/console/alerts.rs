//! What is wrong, and what stops just that: the first thing that somebody sees who was woken up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::batch::listing::{BatchFilter, BatchView};
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::dag::state::BatchState;
use milepost_core::error::StoreError;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::listing::{JobFilter, JobRow, QueueView};
use milepost_core::port::Store;
use milepost_core::schedule::ScheduleView;
use milepost_core::search::LastFailure;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::act::{Action, Field};
use super::page::Page;
use super::words::{between, count, cut, encoded, length, query, relative, several};
use super::{bulks, events, schedules};

/// How many failed jobs are looked at for what failed.
const FAILED_MAX: u32 = 200;
/// Later than this an event or a tick is late.
const LATE: Duration = Duration::from_secs(60);
/// For so long a worker that died is news.
const NEWS: Duration = Duration::from_secs(15 * 60);

/// Something that is wrong.
pub(crate) struct Alert {
    /// Whether somebody has to do something, rather than look.
    pub(crate) error: bool,
    pub(crate) title: String,
    pub(crate) words: String,
    /// Where it is to be looked at.
    pub(crate) url: String,
    pub(crate) actions: Vec<Action>,
}

/// What failed jobs have in common: kind, queue, and what their failure is called.
type Cause<'a> = (&'a str, &'a str, &'a str);
/// A failed job and its failure.
type FailedJob<'a> = (&'a JobRow, Option<&'a LastFailure>);

/// What the store says, as far as it is known.
pub(super) struct Facts {
    pub(super) queues: Option<Vec<QueueView>>,
    pub(super) subscriptions: Option<Vec<SubscriptionView>>,
    pub(super) consumers: Option<Vec<ConsumerView>>,
    pub(super) workers: Vec<WorkerView>,
    pub(super) schedules: Vec<ScheduleView>,
    pub(super) batches: Vec<BatchView>,
    /// With why they were stopped, or failed.
    pub(super) bulks: Vec<(BulkView, Option<String>)>,
    pub(super) failed: Vec<JobRow>,
    pub(super) failures: Vec<LastFailure>,
}

impl Facts {
    /// What is read directly: all of it is bounded.
    pub(super) async fn read(store: &Arc<dyn Store>) -> Result<Self, StoreError> {
        let failed = JobFilter { state: Some(JobState::Failed), limit: FAILED_MAX, ..JobFilter::default() };
        let failed_batches =
            BatchFilter { state: Some(BatchState::Failed), limit: 20, ..BatchFilter::default() };
        let bulks = BulkFilter { limit: 20, ..BulkFilter::default() };
        let (workers, schedules, batches, bulks, failed) = tokio::try_join!(
            store.workers(),
            store.schedules(),
            store.batches(&failed_batches),
            store.bulks(&bulks),
            store.jobs(&failed),
        )?;
        let mut with_why = Vec::with_capacity(bulks.len());
        for bulk in bulks {
            let why = bulks::stopped(&bulk, store.as_ref()).await?;
            with_why.push((bulk, why));
        }
        let ids: Vec<_> = failed.iter().map(|job| job.id).collect();
        let failures = store.last_failures(&ids).await?;
        Ok(Self {
            queues: None,
            subscriptions: None,
            consumers: None,
            workers,
            schedules,
            batches,
            bulks: with_why,
            failed,
            failures,
        })
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &WorkerView> {
        self.workers.iter().filter(|worker| worker.ended_at.is_none())
    }

    /// All that is wrong, what needs somebody first.
    pub(super) fn alerts(&self, page: &Page) -> Vec<Alert> {
        let mut alerts = Vec::new();
        alerts.extend(self.nobody_works(page));
        alerts.extend(self.failing(page));
        alerts.extend(self.batches.iter().map(|batch| of_batch(batch, page)));
        alerts.extend(self.subscriptions.iter().flatten().flat_map(|of| of_subscription(of, page)));
        alerts.extend(self.bulks.iter().filter_map(|(bulk, why)| of_bulk(bulk, why.as_deref(), page)));
        alerts.extend(self.consumers.iter().flatten().filter_map(of_consumer));
        alerts.extend(self.schedules.iter().filter_map(|schedule| of_schedule(schedule, page)));
        alerts.extend(self.queues.iter().flatten().filter_map(|queue| paused(queue, page)));
        alerts.extend(self.died(page.now));
        alerts.sort_by_key(|alert| !alert.error);
        for (place, alert) in alerts.iter_mut().enumerate() {
            alert.actions =
                std::mem::take(&mut alert.actions).into_iter().map(|action| action.among(place)).collect();
        }
        alerts
    }

    /// Queues in which jobs wait that nobody serves.
    fn nobody_works(&self, page: &Page) -> Vec<Alert> {
        let queues = self.queues.iter().flatten();
        let waits = |queue: &&QueueView| {
            waiting(queue) > 0
                && queue.paused_at.is_none()
                && !self.alive().any(|worker| worker.queues.contains(&queue.name))
        };
        queues
            .filter(waits)
            .map(|queue| Alert {
                error: true,
                title: format!("Nobody works on queue {}", queue.name),
                words: format!(
                    "{}, and no living worker serves the queue. Start one, or look why the last one ended.",
                    several(waiting(queue).unsigned_abs(), "job waits", "jobs wait")
                ),
                url: "/workers".to_owned(),
                actions: pause_of(&queue.name, page).into_iter().collect(),
            })
            .collect()
    }

    /// Failed jobs, by kind and by what their failures are called.
    fn failing(&self, page: &Page) -> Vec<Alert> {
        let mut groups: BTreeMap<Cause<'_>, Vec<FailedJob<'_>>> = BTreeMap::new();
        for job in &self.failed {
            let failure = self.failures.iter().find(|failure| failure.job == job.id);
            let code = failure.and_then(|failure| failure.code.as_deref()).unwrap_or_default();
            groups.entry((&job.kind, &job.queue, code)).or_default().push((job, failure));
        }
        let more = if self.failed.len() == FAILED_MAX as usize { " of the newest" } else { "" };
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, jobs)| std::cmp::Reverse(jobs.len()));
        groups.truncate(8);
        let alert = |((kind, queue, code), jobs): (Cause<'_>, Vec<FailedJob<'_>>)| {
            let last = jobs.iter().filter_map(|(_, failure)| *failure).max_by_key(|failure| failure.at);
            let words = last.map_or_else(String::new, |last| {
                let message = last.message.as_deref().unwrap_or("no words were left");
                format!(
                    "{}, the last {}: {}",
                    if code.is_empty() { "failed" } else { code },
                    relative(last.at, page.now),
                    cut(message, 160)
                )
            });
            let filter = [("state", "failed"), ("kind", kind), ("queue", queue), ("error", code)];
            Alert {
                error: true,
                title: format!("{}{more} failed: {kind}", several(jobs.len() as u64, "job", "jobs")),
                words,
                url: format!("/jobs?{}", query(&filter)),
                actions: pause_of(queue, page).into_iter().collect(),
            }
        };
        groups.into_iter().map(alert).collect()
    }

    fn died(&self, now: Timestamp) -> Option<Alert> {
        let recent =
            |worker: &&WorkerView| worker.died && worker.ended_at.is_some_and(|at| between(at, now) < NEWS);
        let dead: Vec<&WorkerView> = self.workers.iter().filter(recent).collect();
        let last = dead.iter().filter_map(|worker| worker.ended_at).max()?;
        Some(Alert {
            error: false,
            title: format!("{} died", several(dead.len() as u64, "worker", "workers")),
            words: format!("The last {}; what it held was given to others.", relative(last, now)),
            url: "/workers".to_owned(),
            actions: Vec::new(),
        })
    }
}

/// How many jobs of the queue wait to be claimed.
pub(super) fn waiting(queue: &QueueView) -> i64 {
    let waits = |state: JobState| matches!(state, JobState::Pending | JobState::RetryWait);
    queue.counts.iter().filter(|(state, _)| waits(*state)).map(|(_, number)| number).sum()
}

/// The button that stops a queue.
pub(super) fn pause_of(queue: &str, page: &Page) -> Option<Action> {
    let action = Action::new(page, format!("pause-{}", encoded(queue)), "/queues/set", "Pause the queue")
        .asks(
            format!("Pause queue {queue}?"),
            "Nothing of it is claimed until somebody resumes it; jobs that run are not touched.",
        )
        .with(Field::hidden("queue", queue))
        .with(Field::hidden("paused", "true"))
        .danger()
        .with_reason();
    page.viewer.operates.then_some(action)
}

/// The button that lets a queue go on.
pub(super) fn resume_of(queue: &str, page: &Page) -> Option<Action> {
    let action = Action::new(page, format!("resume-{}", encoded(queue)), "/queues/set", "Resume the queue")
        .asks(format!("Let queue {queue} go on?"), "Its jobs are claimed again.")
        .with(Field::hidden("queue", queue))
        .with(Field::hidden("paused", "false"))
        .with_reason();
    page.viewer.operates.then_some(action)
}

fn paused(queue: &QueueView, page: &Page) -> Option<Alert> {
    let since = queue.paused_at?;
    Some(Alert {
        error: false,
        title: format!("Queue {} is paused", queue.name),
        words: format!(
            "Since {}; {}.",
            relative(since, page.now),
            several(waiting(queue).unsigned_abs(), "job waits", "jobs wait")
        ),
        url: "/queues".to_owned(),
        actions: resume_of(&queue.name, page).into_iter().collect(),
    })
}

fn of_batch(batch: &BatchView, page: &Page) -> Alert {
    Alert {
        error: true,
        title: match &batch.key {
            Some(key) => format!("A batch of {} failed: {key}", batch.dag),
            None => format!("A batch of {} failed", batch.dag),
        },
        words: format!(
            "{} of {} failed, {} for that; {}",
            count(batch.counts.failed),
            several(batch.counts.total(), "task", "tasks"),
            several(batch.counts.waiting, "waits", "wait"),
            relative(batch.updated_at, page.now)
        ),
        url: format!("/batches/{}", batch.id),
        actions: Vec::new(),
    }
}

fn of_subscription(of: &SubscriptionView, page: &Page) -> Vec<Alert> {
    let alert = |error, title: String, words: String| Alert {
        error,
        title,
        words,
        url: format!("/events?{}", query(&[("subscription", &of.name)])),
        actions: page.viewer.operates.then(|| events::stop(of, page)).into_iter().collect(),
    };
    let mut alerts = Vec::new();
    let (name, lag) = (&of.name, of.oldest_at.map(|at| between(at, page.now)));
    if of.halted_aggregates > 0 {
        let words = "Their first events were refused too often; nothing of them goes out until somebody retries, edits or skips these.";
        let halted = several(of.halted_aggregates.unsigned_abs(), "aggregate is", "aggregates are");
        alerts.push(alert(true, format!("{halted} halted in {name}"), words.to_owned()));
    }
    let behind = several(of.backlog.unsigned_abs(), "event", "events");
    let down = of.publishers.iter().find_map(|publisher| Some((publisher, publisher.down_since?)));
    if let Some((publisher, since)) = down {
        let why = publisher.down_why.as_deref().unwrap_or("it did not say why");
        let words = format!("Since {}, {behind} behind: {}", relative(since, page.now), cut(why, 200));
        alerts.push(alert(true, format!("The sink of {name} takes nothing"), words));
    }
    if let Some(at) = of.paused_at {
        let why = of.paused_why.as_deref().unwrap_or("nobody said why");
        alerts.push(alert(
            false,
            format!("Subscription {name} is paused"),
            format!("Since {}: {why}", relative(at, page.now)),
        ));
    } else if let Some(lag) = lag.filter(|lag| *lag > LATE && down.is_none()) {
        let nobody = if of.publishers.is_empty() { "; nothing publishes it" } else { "" };
        let words = format!("{behind} behind{nobody}");
        alerts.push(alert(of.publishers.is_empty(), format!("{name} lags by {}", length(lag)), words));
    }
    if of.dead > 0 {
        let dead = several(of.dead.unsigned_abs(), "event was", "events were");
        let mut given_up = alert(
            false,
            format!("{dead} given up in {name}"),
            "They wait for a person: retry or drop them.".to_owned(),
        );
        given_up.actions.clear();
        given_up.url = format!("/dead-letters?{}", query(&[("subscription", name)]));
        alerts.push(given_up);
    }
    alerts
}

fn of_bulk(bulk: &BulkView, stopped: Option<&str>, page: &Page) -> Option<Alert> {
    let now = page.now;
    // One that looks again only much later was meant to wait, as for its window.
    let looks = bulk.due_at.zip(bulk.updated_at).is_none_or(|(due, left)| between(left, due) <= LATE);
    let since = bulk.throttle_since.filter(|since| looks && between(*since, now) > LATE);
    let held = bulks::held(bulk).zip(since);
    let (done, failed) = (count(bulk.counts.done), count(bulk.counts.failed));
    let why = stopped.map_or_else(String::new, |why| format!("{}. ", cut(why, 200).trim_end_matches('.')));
    let (error, title, words) = match (bulk.state, held) {
        (JobState::Failed, _) => (
            true,
            format!("Bulk job {} failed", bulk.name),
            format!("{why}{done} done, {failed} could not be"),
        ),
        (JobState::Aborted, _) => (
            false,
            format!("Bulk job {} is stopped", bulk.name),
            format!("{why}{done} done, {failed} could not be; resumed it goes on from there"),
        ),
        (_, Some((why, since))) => (
            false,
            format!("Bulk job {} is held", bulk.name),
            format!("Since {}: {}", relative(since, now), cut(why, 200)),
        ),
        _ => return None,
    };
    Some(Alert {
        error,
        title,
        words,
        url: format!("/bulk/{}", bulk.id),
        actions: bulks::actions(bulk, page),
    })
}

fn of_consumer(consumer: &ConsumerView) -> Option<Alert> {
    (consumer.dead > 0).then(|| Alert {
        error: false,
        title: format!(
            "{} in the inbox of {}",
            several(consumer.dead, "dead letter", "dead letters"),
            consumer.consumer.name
        ),
        words: "Events came out of order, and what was missing did not come in time.".to_owned(),
        url: format!("/dead-letters?{}", query(&[("consumer", &consumer.consumer.name)])),
        actions: Vec::new(),
    })
}

fn of_schedule(view: &ScheduleView, page: &Page) -> Option<Alert> {
    let now = page.now;
    let name = &view.schedule.name;
    let late = view.next_at.filter(|at| view.paused_at.is_none() && *at < now && between(*at, now) > LATE);
    let (error, title, words) = match (&view.refused, late) {
        (Some(refused), _) => (true, format!("Schedule {name} started no batch"), cut(&refused.why, 200)),
        (None, Some(at)) => (
            true,
            format!("Schedule {name} does not tick"),
            format!("Its tick was due {}; does a worker live?", relative(at, now)),
        ),
        _ => return None,
    };
    let actions = page.viewer.operates.then(|| schedules::stop(view, page)).into_iter().collect();
    Some(Alert { error, title, words, url: "/schedules".to_owned(), actions })
}
