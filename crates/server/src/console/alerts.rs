//! Alerts of the overview page, each with buttons for actions that limit the damage.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::actions::queue::QueueAction;
use milepost_core::alert::{AlertRule, AlertTarget};
use milepost_core::batch::listing::BatchView;
use milepost_core::bulk::listing::BulkView;
use milepost_core::dag::state::BatchState;
use milepost_core::doctor::Finding;
use milepost_core::listing::{JobRow, QueueKinds};
use milepost_core::schedule::ScheduleView;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::alert::{Alert, CAUSES_MAX, Details, LATE, argument, key, to_look_at};
use super::alert_facts::{Facts, JOBS_MAX, RUNS_MAX};
use super::event_alerts::{of_consumer, of_subscription};
use super::format::{between, count, cut, relative, several};
use super::page::Page;
use super::queues::set_queue;
use super::{batch, bulks, limits, schedules};

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
        alerts.extend(self.alert_targets.iter().filter_map(|target| of_target(target, page.now)));
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
        let (key, details) = (key(AlertRule::JobsAborted, ""), Details::of_jobs(&[("state", "aborted")]));
        (stopped > 0).then(|| to_look_at(key, false, title, words, details))
    }

    /// Alerts for the lists that contain more entries than are shown.
    fn more_runs(&self) -> Vec<Alert> {
        let batches = |state| self.batches.iter().filter(|batch| batch.state == state).count();
        let bulks = |state| self.bulks.iter().filter(|(bulk, _)| bulk.state == state).count();
        use AlertRule::{BatchAborted, BatchFailed, BulkAborted, BulkFailed};
        let all = [
            (
                BatchFailed,
                batches(BatchState::Failed),
                "batches may have failed",
                "batches",
                "batch",
                "failed",
            ),
            (
                BatchAborted,
                batches(BatchState::Aborted),
                "batches may be aborted",
                "batches",
                "batch",
                "aborted",
            ),
            (BulkFailed, bulks(JobState::Failed), "bulk jobs may have failed", "bulk", "bulk", "failed"),
            (BulkAborted, bulks(JobState::Aborted), "bulk jobs may be aborted", "bulk", "bulk", "aborted"),
        ];
        let full = all.into_iter().filter(|(_, number, ..)| *number == RUNS_MAX as usize);
        let words = format!("Only the newest {RUNS_MAX} are shown here.");
        full.map(|(rule, _, title, page, noun, state)| {
            let command = format!("milepost {noun} list --state {state}");
            let details = Details::at(format!("/{page}?state={state}"), command);
            to_look_at(key(rule, "more"), state == "failed", format!("More {title}"), &words, details)
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
            None => "Other workers serve the same queues and kinds, and got their jobs.".to_owned(),
            Some((queue, kinds)) => format!(
                "No active worker runs jobs of kind {} in queue {queue}{}: start one.",
                cut(&kinds.join(", "), 200),
                if orphaned.len() > 1 { ", nor in other queues that it served" } else { "" },
            ),
        };
        Some(Alert {
            key: key(AlertRule::WorkersDied, ""),
            error: false,
            title: format!("{} died", several(dead.len() as u64, "worker", "workers")),
            words: format!("{}, {}. {left}", names.join(", "), relative(last, now)),
            details: Details::of_workers(),
            preview: None,
            actions: Vec::new(),
            silence: None,
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
        key(AlertRule::DatabasePromoted, ""),
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
        key: key(AlertRule::QueuePaused, queue.name.as_str()),
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
        silence: None,
    })
}

fn of_batch(batch: &BatchView, page: &Page) -> Alert {
    let error = batch.state == BatchState::Failed;
    let became = if error { "failed" } else { "is aborted" };
    let name = batch.key.as_ref().map_or_else(String::new, |key| format!(": {key}"));
    let when = relative(batch.updated_at, page.now);
    let rule = if error { AlertRule::BatchFailed } else { AlertRule::BatchAborted };
    Alert {
        key: key(rule, batch.id.to_string()),
        error,
        title: format!("A batch of {} {became}{name}", batch.dag),
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
        silence: None,
    }
}

fn of_bulk(bulk: &BulkView, stopped: Option<&str>, page: &Page) -> Option<Alert> {
    let now = page.now;
    // A run that checks again only much later waits intentionally, for example for its time window.
    let looks = bulk.due_at.zip(bulk.updated_at).is_none_or(|(due, left)| between(left, due) <= LATE);
    let since = bulk.throttle_since.filter(|since| looks && between(*since, now) > LATE);
    let held = bulks::held(bulk).zip(since);
    let (done, failed) = (count(bulk.counts.done), count(bulk.counts.failed));
    let why = stopped.map_or_else(String::new, |why| format!("{}. ", cut(why, 200).trim_end_matches('.')));
    let (rule, error, title, words) = match (bulk.state, held) {
        (JobState::Failed, _) => {
            let words = format!("{why}{done} done, {failed} failed");
            (AlertRule::BulkFailed, true, format!("Bulk job {} failed", bulk.name), words)
        }
        (JobState::Aborted, _) => (
            AlertRule::BulkAborted,
            false,
            format!("Bulk job {} is aborted", bulk.name),
            format!("{why}{done} done, {failed} failed; if resumed, it continues from there"),
        ),
        (_, Some((why, since))) => (
            AlertRule::BulkThrottled,
            false,
            format!("Bulk job {} is throttled", bulk.name),
            format!("Since {}: {}", relative(since, now), cut(why, 200)),
        ),
        _ => return None,
    };
    Some(Alert {
        key: key(rule, bulk.id.to_string()),
        error,
        title,
        words,
        details: Details::at(format!("/bulk/{}", bulk.id), format!("milepost bulk show {}", bulk.id)),
        preview: None,
        actions: bulks::actions(bulk, page),
        silence: None,
    })
}

fn of_schedule(view: &ScheduleView, page: &Page) -> Option<Alert> {
    let now = page.now;
    let name = &view.schedule.name;
    let late = view.next_at.filter(|at| view.paused_at.is_none() && *at < now && between(*at, now) > LATE);
    let (rule, error, title, words) = match (&view.refused, late) {
        (Some(refused), _) => {
            let title = format!("Schedule {name} started no batch");
            (AlertRule::ScheduleRefused, true, title, cut(&refused.why, 200))
        }
        (None, Some(at)) => (
            AlertRule::ScheduleLate,
            true,
            format!("Schedule {name} does not tick"),
            format!("Its tick was due {}. Check that a worker is active.", relative(at, now)),
        ),
        (None, None) => {
            let at = view.paused_at?;
            let words =
                format!("Since {}; it does not tick until an operator resumes it.", relative(at, now));
            (AlertRule::SchedulePaused, false, format!("Schedule {name} is paused"), words)
        }
    };
    let actions = page.viewer.operates.then(|| schedules::stop(view, page)).into_iter().collect();
    Some(Alert {
        key: key(rule, name.as_str()),
        error,
        title,
        words,
        details: Details::at("/schedules", "milepost schedules list"),
        preview: None,
        actions,
        silence: None,
    })
}

fn of_target(target: &AlertTarget, now: Timestamp) -> Option<Alert> {
    let since = target.failing(now)?;
    let error = target.last_error.as_deref().unwrap_or("no reason given");
    let words = format!("Since {}: {}", relative(since, now), cut(error, 200));
    let (key, title) = (
        key(AlertRule::TargetFailing, target.name.as_str()),
        format!("Messages to the alert target {} fail", target.name),
    );
    Some(to_look_at(key, true, title, &words, Details::at("/", "milepost alerts targets")))
}
