//! Alerts for jobs that have failed, and for jobs that fail and are tried again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use milepost_core::actions::Action as _;
use milepost_core::actions::job::JobAction;
use milepost_core::actions::queue::QueueAction;
use milepost_core::alert::{AlertKey, AlertRule};
use milepost_core::listing::{JobRow, LastFailure};

use super::alert::{Alert, CAUSES_MAX, Details, Preview, key, to_look_at};
use super::alert_facts::{Facts, JOBS_MAX};
use super::form::Action;
use super::format::{cut, query, relative, several};
use super::limits;
use super::page::Page;
use super::queues::set_queue;

/// From this number of jobs that fail for one cause and wait for a retry, they are reported. Fewer are normal.
const RETRYING_MANY: usize = 10;
/// Jobs with this number of attempts are reported even if they are few.
const ATTEMPTS_MANY: u32 = 5;

/// The common properties of jobs whose attempts failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cause<'a> {
    kind: &'a str,
    queue: &'a str,
    error_code: &'a str,
}

/// Jobs whose last attempts failed for one cause.
struct Group<'a> {
    cause: Cause<'a>,
    jobs: Vec<&'a JobRow>,
    /// The latest failure.
    last: Option<&'a LastFailure>,
}

impl<'a> Group<'a> {
    /// Groups jobs by cause, those with the most jobs first.
    fn all(jobs: &'a [JobRow], failures: &'a [LastFailure]) -> Vec<Self> {
        let mut groups: BTreeMap<Cause<'a>, Self> = BTreeMap::new();
        for job in jobs {
            let failure = failures.iter().find(|failure| failure.job == job.id);
            let error_code = failure.and_then(|failure| failure.code.as_deref()).unwrap_or_default();
            let cause = Cause { kind: &job.kind, queue: &job.queue, error_code };
            let group = groups.entry(cause).or_insert_with(|| Self { cause, jobs: Vec::new(), last: None });
            group.jobs.push(job);
            group.last = group.last.into_iter().chain(failure).max_by_key(|failure| failure.at);
        }
        let mut groups: Vec<Self> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.jobs.len()));
        groups
    }

    fn number(&self) -> u64 {
        self.jobs.len() as u64
    }

    /// Returns the identity of the alert for the cause.
    fn key(&self, rule: AlertRule) -> AlertKey {
        let Cause { kind, queue, error_code } = self.cause;
        let code = if error_code.is_empty() { String::new() } else { format!(": {error_code}") };
        key(rule, format!("{kind} in {queue}{code}"))
    }

    fn attempts(&self) -> u32 {
        self.jobs.iter().map(|job| job.attempt).max().unwrap_or_default()
    }

    /// Returns the error code, and when and how the last attempt failed.
    fn error(&self, page: &Page) -> String {
        let code = if self.cause.error_code.is_empty() { "failed" } else { self.cause.error_code };
        self.last.map_or_else(String::new, |last| {
            let message = last.message.as_deref().unwrap_or("no error message");
            format!("{code}, the last {}: {}", relative(last.at, page.now), cut(message, 160))
        })
    }

    fn filter<'f>(&self, state: &'f str) -> [(&'f str, &'f str); 4]
    where
        'a: 'f,
    {
        let Cause { kind, queue, error_code } = self.cause;
        [("state", state), ("kind", kind), ("queue", queue), ("error", error_code)]
    }

    fn actions(&self, facts: &Facts, page: &Page) -> Vec<Action> {
        let slow = limits::slow_down(self.cause.kind, facts.limits.as_deref(), page);
        slow.into_iter().chain(set_queue(self.cause.queue, QueueAction::Pause, page)).collect()
    }
}

impl Facts {
    /// Alerts for failed jobs, grouped by cause.
    pub(super) fn failed(&self, page: &Page) -> Vec<Alert> {
        let more = if self.failed.len() == JOBS_MAX as usize { " of the newest" } else { "" };
        let mut groups = Group::all(&self.failed, &self.failures);
        let others = groups.split_off(groups.len().min(CAUSES_MAX));
        let alert = |group: Group<'_>| {
            let filter = group.filter("failed");
            Alert {
                key: group.key(AlertRule::JobsFailed),
                error: true,
                title: format!(
                    "{}{more} failed: {}",
                    several(group.number(), "job", "jobs"),
                    group.cause.kind
                ),
                words: group.error(page),
                details: Details::of_jobs(&filter),
                preview: page.viewer.operates.then(|| retry(&filter)),
                actions: group.actions(self, page),
                silence: None,
            }
        };
        let others = (!others.is_empty()).then(|| {
            let jobs = others.iter().map(Group::number).sum();
            let causes = several(others.len() as u64, "more cause", "more causes");
            let title = format!("{}{more} failed for {causes}", several(jobs, "job", "jobs"));
            let (key, details) =
                (key(AlertRule::JobsFailed, "more"), Details::of_jobs(&[("state", "failed")]));
            to_look_at(key, true, title, "See the list of failed jobs.", details)
        });
        groups.into_iter().map(alert).chain(others).collect()
    }

    /// Alerts for many jobs, or jobs with many attempts, that fail for one cause and are tried again.
    pub(super) fn retrying(&self, page: &Page) -> Vec<Alert> {
        let at_least = if self.retrying.len() == JOBS_MAX as usize { "At least " } else { "" };
        let groups = Group::all(&self.retrying, &self.failures).into_iter();
        let groups =
            groups.filter(|group| group.jobs.len() >= RETRYING_MANY || group.attempts() >= ATTEMPTS_MANY);
        let alert = |group: Group<'_>| {
            let fail =
                several(group.number(), "job fails and is tried again", "jobs fail and are tried again");
            Alert {
                key: group.key(AlertRule::JobsRetrying),
                error: false,
                title: format!("{at_least}{fail}: {}", group.cause.kind),
                words: format!(
                    "{}. Up to {}.",
                    group.error(page),
                    several(group.attempts().into(), "attempt", "attempts")
                ),
                details: Details::of_jobs(&group.filter("retry_wait")),
                preview: None,
                actions: group.actions(self, page),
                silence: None,
            }
        };
        groups.take(CAUSES_MAX).map(alert).collect()
    }
}

/// Returns the link to the preview of a retry of all jobs that match this filter.
fn retry(filter: &[(&str, &str)]) -> Preview {
    let action = [("operation", JobAction::Retry.as_str()), ("all", "yes")];
    let url = format!("/jobs/change?{}", query(&[&action[..], filter].concat()));
    Preview { label: JobAction::Retry.title(), url }
}
