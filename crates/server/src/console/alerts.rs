//! Alerts of the overview page, each with buttons for actions that limit the damage.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::actions::queue::QueueAction;
use milepost_core::batch::listing::BatchView;
use milepost_core::bulk::listing::BulkView;
use milepost_core::dag::state::BatchState;
use milepost_core::doctor::Finding;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::listing::{JobRow, QueueKinds};
use milepost_core::schedule::ScheduleView;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::alert::{Alert, CAUSES_MAX, Details, argument, to_look_at};
use super::alert_facts::{Facts, JOBS_MAX, RUNS_MAX};
use super::format::{between, count, cut, length, query, relative, several};
use super::page::Page;
use super::queues::set_queue;
use super::{batch, bulks, events, limits, schedules};

/// The delay after which an event or a tick counts as late.
const LATE: Duration = Duration::from_secs(60);
/// How long the death of a worker is reported.
const NEWS: Duration = Duration::from_secs(15 * 60);

impl Facts {
    /// Returns all alerts, errors first.
    pub(super) fn alerts(&self, page: &Page) -> Vec<Alert> {
        let mut alerts = Vec::new();
        alerts.extend(self.unserved());
        alerts.extend(self.failed(page));
        alerts.extend(self.retrying(page));
        alerts.extend(self.batches.iter().map(|batch| of_batch(batch, page)));
        alerts.extend(self.more_runs());
        alerts.extend(self.subscriptions.iter().flatten().flat_map(|of| of_subscription(of, page)));
        alerts.extend(self.bulks.iter().filter_map(|(bulk, why)| of_bulk(bulk, why.as_deref(), page)));
        alerts.extend(self.consumers.iter().flatten().flat_map(of_consumer));
        alerts.extend(self.schedules.iter().filter_map(|schedule| of_schedule(schedule, page)));
        alerts.extend(
            self.queues
                .iter()
                .flatten()
                .filter_map(|queue| paused(queue, self.pauses.get(&queue.name), page)),
        );
        alerts.extend(limits::slowed(self.limits.as_deref().unwrap_or_default(), page));
        alerts.extend(self.aborted());
        alerts.extend(self.promoted.as_ref().map(of_promotion));
        alerts.extend(self.died(page.now));
        alerts.sort_by_key(|alert| !alert.error);
        for (place, alert) in alerts.iter_mut().enumerate() {
            alert.actions =
                std::mem::take(&mut alert.actions).into_iter().map(|action| action.among(place)).collect();
        }
        alerts
    }

    /// The alert for aborted jobs. Bulk jobs have separate alerts.
    fn aborted(&self) -> Option<Alert> {
        let is_bulk = |job: &&JobRow| self.bulks.iter().any(|(bulk, _)| bulk.id == job.id);
        let stopped = self.aborted.iter().filter(|job| !is_bulk(job)).count() as u64;
        let more = if self.aborted.len() == JOBS_MAX as usize { "At least " } else { "" };
        let title = format!("{more}{} aborted", several(stopped, "job is", "jobs are"));
        let words = "They remain aborted until an operator retries or cancels them.";
        (stopped > 0).then(|| to_look_at(false, title, words, Details::of_jobs(&[("state", "aborted")])))
    }

    /// Alerts for the lists that contain more entries than are shown.
    fn more_runs(&self) -> Vec<Alert> {
        let batches = |state| self.batches.iter().filter(|batch| batch.state == state).count();
        let bulks = |state| self.bulks.iter().filter(|(bulk, _)| bulk.state == state).count();
        let all = [
            (batches(BatchState::Failed), true, "More batches may have failed", "batches", "batch", "failed"),
            (
                batches(BatchState::Aborted),
                false,
                "More batches may be aborted",
                "batches",
                "batch",
                "aborted",
            ),
            (bulks(JobState::Failed), true, "More bulk jobs may have failed", "bulk", "bulk", "failed"),
            (bulks(JobState::Aborted), false, "More bulk jobs may be aborted", "bulk", "bulk", "aborted"),
        ];
        let full = all.into_iter().filter(|(number, ..)| *number == RUNS_MAX as usize);
        let words = format!("Only the newest {RUNS_MAX} are shown here.");
        full.map(|(_, error, title, page, noun, state)| {
            let command = format!("milepost {noun} list --state {state}");
            to_look_at(
                error,
                title.to_owned(),
                &words,
                Details::at(format!("/{page}?state={state}"), command),
            )
        })
        .collect()
    }

    fn died(&self, now: Timestamp) -> Option<Alert> {
        let recent =
            |worker: &&WorkerView| worker.died && worker.ended_at.is_some_and(|at| between(at, now) < NEWS);
        let dead: Vec<&WorkerView> = self.workers.iter().filter(recent).collect();
        let last = dead.iter().filter_map(|worker| worker.ended_at).max()?;
        let names: Vec<String> = dead.iter().take(CAUSES_MAX).map(|worker| cut(&worker.name, 60)).collect();
        let orphaned = self.orphaned(&dead);
        let left = match orphaned.first_key_value() {
            None => "Other workers serve the same queues and kinds, and got its jobs.".to_owned(),
            Some((queue, kinds)) => format!(
                "No active worker runs jobs of kind {} in queue {queue}{}: start one.",
                cut(&kinds.join(", "), 200),
                if orphaned.len() > 1 { ", nor in other queues that it served" } else { "" },
            ),
        };
        Some(Alert {
            error: false,
            title: format!("{} died", several(dead.len() as u64, "worker", "workers")),
            words: format!("{}, {}. {left}", names.join(", "), relative(last, now)),
            details: Details::of_workers(),
            preview: None,
            actions: Vec::new(),
        })
    }

    /// Returns the queues, each with its kinds, that dead workers served and no active worker serves.
    fn orphaned(&self, dead: &[&WorkerView]) -> BTreeMap<String, Vec<String>> {
        let mut orphaned: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for worker in dead {
            for queue in &worker.queues {
                let serves = |kind: &&String| self.alive().any(|it| it.serves(queue, kind));
                let kinds = worker.kinds.iter().filter(|kind| !serves(kind)).cloned();
                orphaned.entry(queue.clone()).or_default().extend(kinds);
            }
        }
        orphaned.retain(|_, kinds| !kinds.is_empty());
        orphaned.into_iter().map(|(queue, kinds)| (queue, kinds.into_iter().collect())).collect()
    }
}

fn of_promotion(finding: &Finding) -> Alert {
    let latest = finding.examples.first().map_or("", |example| &example.detail);
    let words = format!("{} The latest: {latest}.", finding.check.means());
    to_look_at(
        false,
        "The database server was promoted or restored".to_owned(),
        &words,
        Details::at("/settings", "milepost doctor --quick"),
    )
}

fn paused(queue: &QueueKinds, by: Option<&String>, page: &Page) -> Option<Alert> {
    let since = queue.paused_at?;
    let by = by.map_or_else(String::new, |who| format!(", by {who}"));
    Some(Alert {
        error: false,
        title: format!("Queue {} is paused", queue.name),
        words: format!(
            "Since {}{by}; {}.",
            relative(since, page.now),
            several(queue.waiting().unsigned_abs(), "job waits", "jobs wait")
        ),
        details: Details::at("/queues", format!("milepost queues resume {}", argument(&queue.name))),
        preview: None,
        actions: set_queue(&queue.name, QueueAction::Resume, page).into_iter().collect(),
    })
}

fn of_batch(batch: &BatchView, page: &Page) -> Alert {
    let error = batch.state == BatchState::Failed;
    let became = if error { "failed" } else { "is aborted" };
    let key = batch.key.as_ref().map_or_else(String::new, |key| format!(": {key}"));
    let when = relative(batch.updated_at, page.now);
    Alert {
        error,
        title: format!("A batch of {} {became}{key}", batch.dag),
        words: if error {
            format!(
                "{} of {} failed; {} for them; {when}",
                count(batch.counts.failed),
                several(batch.counts.total(), "task", "tasks"),
                several(batch.counts.waiting, "task waits", "tasks wait"),
            )
        } else {
            format!("{}; {when}", batch::standing(batch))
        },
        details: Details::at(format!("/batches/{}", batch.id), format!("milepost batch show {}", batch.id)),
        preview: None,
        // An aborted batch has the button that resumes it.
        actions: if error { Vec::new() } else { batch::actions(batch, page) },
    }
}

fn of_subscription(of: &SubscriptionView, page: &Page) -> Vec<Alert> {
    let alert = |error, title: String, words: String| Alert {
        error,
        title,
        words,
        details: Details::at(
            format!("/events?{}", query(&[("subscription", &of.name)])),
            "milepost events subscriptions",
        ),
        preview: None,
        actions: page.viewer.operates.then(|| events::stop(of, page)).into_iter().collect(),
    };
    let mut alerts = Vec::new();
    if of.reseed_needed {
        let words = "Its positions were stored in another database, for example because a dump was restored. No event is published until `milepost events reseed`, after which some events are published again.";
        alerts.push(alert(true, format!("{} needs a reseed", of.name), words.to_owned()));
    }
    let (name, lag) = (&of.name, of.oldest_at.map(|at| between(at, page.now)));
    if of.halted_aggregates > 0 {
        let words = "Their first events failed too often. No event of these aggregates is published until an operator retries, edits or skips the first one.";
        let halted = several(of.halted_aggregates.unsigned_abs(), "aggregate is", "aggregates are");
        // A pause of the subscription would not help.
        let retry = page.viewer.operates.then(|| events::retry_parked(of, page));
        let halted = Alert {
            actions: retry.into_iter().collect(),
            ..alert(true, format!("{halted} halted in {name}"), with_error(words, of))
        };
        alerts.push(with_parked(halted));
    }
    let parked = (of.parked_aggregates - of.halted_aggregates).max(0);
    if parked > 0 {
        let words = "The sink refused an event. It is tried again later, and the following events of its aggregate wait, which the backlog does not count. Events of other aggregates are published.";
        let title =
            format!("{} parked in {name}", several(parked.unsigned_abs(), "aggregate is", "aggregates are"));
        let retry = page.viewer.operates.then(|| events::retry_parked(of, page));
        let held =
            Alert { actions: retry.into_iter().collect(), ..alert(false, title, with_error(words, of)) };
        alerts.push(with_parked(held));
    }
    let behind = several(of.backlog.unsigned_abs(), "event", "events");
    let down = of.down().and_then(|publisher| Some((publisher, publisher.down_since?)));
    if let Some((publisher, since)) = down {
        let why = publisher.down_why.as_deref().unwrap_or("no reason given");
        let words = format!("Since {}, {behind} behind: {}", relative(since, page.now), cut(why, 200));
        alerts.push(alert(true, format!("The sink of {name} is down"), words));
    }
    if let Some(at) = of.paused_at {
        let why = of.paused_why.as_deref().unwrap_or("no reason given");
        alerts.push(alert(
            false,
            format!("Subscription {name} is paused"),
            format!("Since {}: {why}", relative(at, page.now)),
        ));
    } else if let Some(lag) = lag.filter(|lag| *lag > LATE && down.is_none()) {
        let nobody = if of.publishers.is_empty() { "; no relay publishes it" } else { "" };
        let words = format!("{behind} behind{nobody}");
        alerts.push(alert(of.publishers.is_empty(), format!("{name} lags by {}", length(lag)), words));
    }
    if of.dead > 0 {
        let dead = several(of.dead.unsigned_abs(), "event was", "events were");
        let mut given_up =
            alert(false, format!("{dead} dead-lettered in {name}"), "Retry or drop them.".to_owned());
        given_up.actions.clear();
        let url = format!("/dead-letters?{}", query(&[("subscription", name)]));
        given_up.details = Details::at(url, format!("milepost events dead {}", argument(name)));
        alerts.push(given_up);
    }
    alerts
}

/// Adds what the sink said about a parked aggregate.
fn with_error(words: &str, of: &SubscriptionView) -> String {
    let error = of.parked_why.as_ref().map(|why| format!(" The error of one: {}", cut(why, 200)));
    format!("{words}{}", error.unwrap_or_default())
}

/// Lets an alert lead to the parked aggregates of its subscription.
fn with_parked(alert: Alert) -> Alert {
    let details = Details::at(format!("{}#parked", alert.details.url), "milepost events parked");
    Alert { details, ..alert }
}

fn of_bulk(bulk: &BulkView, stopped: Option<&str>, page: &Page) -> Option<Alert> {
    let now = page.now;
    // A run that checks again only much later waits intentionally, for example for its time window.
    let looks = bulk.due_at.zip(bulk.updated_at).is_none_or(|(due, left)| between(left, due) <= LATE);
    let since = bulk.throttle_since.filter(|since| looks && between(*since, now) > LATE);
    let held = bulks::held(bulk).zip(since);
    let (done, failed) = (count(bulk.counts.done), count(bulk.counts.failed));
    let why = stopped.map_or_else(String::new, |why| format!("{}. ", cut(why, 200).trim_end_matches('.')));
    let (error, title, words) = match (bulk.state, held) {
        (JobState::Failed, _) => {
            (true, format!("Bulk job {} failed", bulk.name), format!("{why}{done} done, {failed} failed"))
        }
        (JobState::Aborted, _) => (
            false,
            format!("Bulk job {} is aborted", bulk.name),
            format!("{why}{done} done, {failed} failed; if resumed, it continues from there"),
        ),
        (_, Some((why, since))) => (
            false,
            format!("Bulk job {} is throttled", bulk.name),
            format!("Since {}: {}", relative(since, now), cut(why, 200)),
        ),
        _ => return None,
    };
    Some(Alert {
        error,
        title,
        words,
        details: Details::at(format!("/bulk/{}", bulk.id), format!("milepost bulk show {}", bulk.id)),
        preview: None,
        actions: bulks::actions(bulk, page),
    })
}

fn of_consumer(of: &ConsumerView) -> Vec<Alert> {
    let name = &of.consumer.name;
    let url = format!("/dead-letters?{}", query(&[("consumer", name)]));
    let details = Details::at(url, format!("milepost inbox dead {}", argument(name)));
    let all = [
        (
            of.parked,
            ["event waits", "events wait"],
            "An earlier event is missing. If it does not arrive in time, the consumer's gap setting applies.",
        ),
        (
            of.dead,
            ["dead letter", "dead letters"],
            "Events arrived out of order, and missing events did not arrive in time.",
        ),
    ];
    let there = all.into_iter().filter(|(number, ..)| *number > 0);
    let alert = |(number, [one, many], words): (u64, [&str; 2], &str)| {
        to_look_at(
            false,
            format!("{} in the inbox of {name}", several(number, one, many)),
            words,
            details.clone(),
        )
    };
    there.map(alert).collect()
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
            format!("Its tick was due {}. Check that a worker is active.", relative(at, now)),
        ),
        (None, None) => {
            let at = view.paused_at?;
            let words =
                format!("Since {}; it does not tick until an operator resumes it.", relative(at, now));
            (false, format!("Schedule {name} is paused"), words)
        }
    };
    let actions = page.viewer.operates.then(|| schedules::stop(view, page)).into_iter().collect();
    Some(Alert {
        error,
        title,
        words,
        details: Details::at("/schedules", "milepost schedules list"),
        preview: None,
        actions,
    })
}
