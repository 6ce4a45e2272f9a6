//! Retention periods of finished jobs, batches, events and audit entries.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::duration::{self, WAIT_MAX};
use crate::named::named_enum;
use crate::state::JobState;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The minimum retention of stopped workers: lists show them, and rescues search for jobs they left behind, for this long.
const WORKERS_MIN: Duration = DAY;
/// The minimum retention of audit entries, whatever a policy specifies. A trigger of the PostgreSQL store enforces it.
pub const AUDIT_MIN: Duration = Duration::from_secs(30 * DAY.as_secs());

/// How long something is kept after it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// For this period.
    For(Duration),
    /// Without a time limit.
    Forever,
}

impl Keep {
    /// Keeps for this number of days.
    #[must_use]
    pub const fn days(days: u32) -> Self {
        Self::For(Duration::from_secs(days as u64 * 24 * 3600))
    }

    /// Returns the period; `None` for [`Keep::Forever`].
    #[must_use]
    pub const fn period(self) -> Option<Duration> {
        match self {
            Self::For(period) => Some(period),
            Self::Forever => None,
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    /// Parses a duration such as `7d`, or `forever`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forever" => Ok(Self::Forever),
            text => duration::parse(text).map(Self::For).map_err(|e| format!("{e}; or give forever")),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(period) => f.write_str(&duration::exact(*period)),
            Self::Forever => f.write_str("forever"),
        }
    }
}

named_enum! {
    /// What has a retention period: the fields of [`RetentionPolicy`].
    Retained {
        /// Succeeded jobs.
        Succeeded = "succeeded",
        /// Canceled or skipped jobs.
        Canceled = "canceled",
        /// Dead letters.
        Failed = "failed",
        /// The history of ended jobs.
        History = "history",
        /// Keys of jobs.
        Keys = "keys",
        /// Stopped workers.
        Workers = "workers",
        /// Batches.
        Batches = "batches",
        /// Ids of processed events.
        Inbox = "inbox",
        /// Events in the log.
        Events = "events",
        /// Entries of the audit.
        Audit = "audit",
    }
}

impl Retained {
    /// Describes it for people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded jobs",
            Self::Canceled => "canceled and skipped jobs",
            Self::Failed => "dead letters of jobs and inboxes",
            Self::History => "histories of ended jobs",
            Self::Keys => "keys of ended jobs",
            Self::Workers => "ended workers",
            Self::Batches => "batches",
            Self::Inbox => "ids of processed events",
            Self::Events => "events that all subscriptions have processed",
            Self::Audit => "entries of the audit",
        }
    }
}

/// A period that an operator has stored. It replaces that of every configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPeriod {
    /// What it applies to.
    pub of: Retained,
    /// How long that is kept.
    pub keep: Keep,
}

impl StoredPeriod {
    /// Rejects a period that no store can apply.
    ///
    /// # Errors
    /// As [`RetentionPolicy::check`].
    pub fn check(self) -> Result<(), InvalidRetention> {
        RetentionPolicy::default().with(&[self]).check()
    }
}

/// Retention periods for everything that would otherwise grow without limit. Unfinished work is always kept, except
/// dead letters. Aborted jobs are kept until an operator resumes or cancels them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionPolicy {
    /// Succeeded jobs, counted from their end.
    pub succeeded: Keep,
    /// Canceled or skipped jobs, counted from their end.
    pub canceled: Keep,
    /// Dead letters, counted from their failure.
    pub failed: Keep,
    /// The history of ended jobs, counted from their end. The last entry, which contains the state, is kept with the
    /// job. At most as long as the job.
    pub history: Keep,
    /// Keys, counted from the end of their job. A key is kept at least as long as its job; zero means exactly as long.
    pub keys: Keep,
    /// Stopped workers, counted from their end.
    pub workers: Keep,
    /// Batches, counted from their end; the jobs of a batch are kept at least as long as the batch.
    pub batches: Keep,
    /// Ids of events that consumers have processed, counted from then: a duplicate that arrives after this period is processed
    /// as a new event. Dead letters of inboxes are kept as long as dead letters of jobs.
    pub inbox: Keep,
    /// Events in the log, counted from their emission. Events that a subscription has not passed, parked events and dead letters are kept.
    pub events: Keep,
    /// Audit entries, counted from the action; at least [`AUDIT_MIN`].
    pub audit: Keep,
}

impl Default for RetentionPolicy {
    /// 7 days for succeeded and canceled jobs, 90 days for dead letters; history and keys as long as their job; 7 days for
    /// workers, batches and events, 14 days for the ids of processed events, and 400 days for the audit.
    fn default() -> Self {
        Self {
            succeeded: Keep::days(7),
            canceled: Keep::days(7),
            failed: Keep::days(90),
            history: Keep::Forever,
            keys: Keep::For(Duration::ZERO),
            workers: Keep::days(7),
            batches: Keep::days(7),
            inbox: Keep::days(14),
            events: Keep::days(7),
            audit: Keep::days(400),
        }
    }
}

impl RetentionPolicy {
    /// A policy that never deletes anything.
    pub const FOREVER: Self = Self {
        succeeded: Keep::Forever,
        canceled: Keep::Forever,
        failed: Keep::Forever,
        history: Keep::Forever,
        keys: Keep::Forever,
        workers: Keep::Forever,
        batches: Keep::Forever,
        inbox: Keep::Forever,
        events: Keep::Forever,
        audit: Keep::Forever,
    };

    /// Returns how long this is kept.
    #[must_use]
    pub const fn of(&self, what: Retained) -> Keep {
        match what {
            Retained::Succeeded => self.succeeded,
            Retained::Canceled => self.canceled,
            Retained::Failed => self.failed,
            Retained::History => self.history,
            Retained::Keys => self.keys,
            Retained::Workers => self.workers,
            Retained::Batches => self.batches,
            Retained::Inbox => self.inbox,
            Retained::Events => self.events,
            Retained::Audit => self.audit,
        }
    }

    const fn of_mut(&mut self, what: Retained) -> &mut Keep {
        match what {
            Retained::Succeeded => &mut self.succeeded,
            Retained::Canceled => &mut self.canceled,
            Retained::Failed => &mut self.failed,
            Retained::History => &mut self.history,
            Retained::Keys => &mut self.keys,
            Retained::Workers => &mut self.workers,
            Retained::Batches => &mut self.batches,
            Retained::Inbox => &mut self.inbox,
            Retained::Events => &mut self.events,
            Retained::Audit => &mut self.audit,
        }
    }

    /// Returns this policy with the periods that operators have stored.
    #[must_use]
    pub fn with(mut self, stored: &[StoredPeriod]) -> Self {
        for StoredPeriod { of, keep } in stored {
            *self.of_mut(*of) = *keep;
        }
        self
    }

    /// Returns how long a job in this state is kept. Unfinished jobs are kept forever.
    #[must_use]
    pub const fn job(&self, state: JobState) -> Keep {
        match state {
            JobState::Succeeded => self.succeeded,
            JobState::Canceled | JobState::Skipped => self.canceled,
            JobState::Failed => self.failed,
            _ => Keep::Forever,
        }
    }

    /// Rejects periods that no store can apply.
    ///
    /// # Errors
    /// [`InvalidRetention`] with the period, the reason and the remedy.
    pub fn check(&self) -> Result<(), InvalidRetention> {
        for what in Retained::ALL {
            if self.of(*what).period().is_some_and(|period| period > WAIT_MAX) {
                return Err(InvalidRetention::TooLong { field: what.as_str() });
            }
        }
        match self.workers.period() {
            Some(period) if period < WORKERS_MIN => return Err(InvalidRetention::WorkersTooShort { period }),
            _ => {}
        }
        match self.audit.period() {
            Some(period) if period < AUDIT_MIN => Err(InvalidRetention::AuditTooShort { period }),
            _ => Ok(()),
        }
    }
}

/// An invalid retention policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidRetention {
    /// A period that is too long to compute with.
    #[error("the retention of {field} is longer than a hundred years; use forever")]
    TooLong {
        /// The period.
        field: &'static str,
    },
    /// The period is shorter than a day. Rescues search for the jobs of a stopped worker for a day after its end.
    #[error("workers are kept for {period:?} after their end; it must be a day or longer")]
    WorkersTooShort {
        /// The period.
        period: Duration,
    },
    /// The period of the audit is shorter than [`AUDIT_MIN`]. The audit must not be prunable to hide an action.
    #[error("entries of the audit are kept for {period:?}; it must be 30 days or longer")]
    AuditTooShort {
        /// The period.
        period: Duration,
    },
}

/// The size of one pruning transaction, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The maximum number of jobs, keys or workers in one transaction. History is deleted in portions of the same number of rows.
    pub limit: u32,
    /// The length of the pause, as a multiple of the transaction's duration. During the pause no other process with a
    /// pause prunes. Zero: no pause, and no waiting for the turn of other processes.
    pub rest: u32,
}

/// Numbers of rows that retention can delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prunable {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that were canceled or skipped.
    pub canceled: u64,
    /// Dead letters.
    pub failed: u64,
    /// Jobs whose history is deleted before the job.
    pub histories: u64,
    /// Keys whose job is already deleted.
    pub keys: u64,
    /// Workers.
    pub workers: u64,
    /// Batches that are not tasks of other batches.
    pub batches: u64,
    /// Ids of events that consumers have processed.
    pub inbox: u64,
    /// Dead letters of inboxes.
    pub inbox_dead: u64,
    /// Events. They are not counted in advance.
    pub events: u64,
    /// Entries of the audit.
    pub audit: u64,
}

impl Prunable {
    /// Returns the counter for jobs in this state.
    #[must_use]
    pub const fn jobs_in(&mut self, state: JobState) -> &mut u64 {
        match state {
            JobState::Succeeded => &mut self.succeeded,
            JobState::Failed => &mut self.failed,
            _ => &mut self.canceled,
        }
    }

    /// Returns the number of jobs in any state.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.succeeded + self.canceled + self.failed
    }

    /// Returns the sum of all counters.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.jobs()
            + self.histories
            + self.keys
            + self.workers
            + self.batches
            + self.inbox
            + self.inbox_dead
            + self.events
            + self.audit
    }
}

/// The result of one call of prune.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// The numbers of deleted objects, by type.
    #[serde(flatten)]
    pub what: Prunable,
    /// Rows deleted in all tables.
    pub rows: u64,
    /// Whether a batch was full, so that more rows may be due.
    pub more: bool,
}

impl AddAssign for Pruned {
    fn add_assign(&mut self, more: Self) {
        let (sum, what) = (&mut self.what, more.what);
        sum.succeeded += what.succeeded;
        sum.canceled += what.canceled;
        sum.failed += what.failed;
        sum.histories += what.histories;
        sum.keys += what.keys;
        sum.workers += what.workers;
        sum.batches += what.batches;
        sum.inbox += what.inbox;
        sum.inbox_dead += what.inbox_dead;
        sum.events += what.events;
        sum.audit += what.audit;
        self.rows += more.rows;
        self.more = more.more;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn the_defaults_and_forever_can_be_kept() {
        assert_eq!(RetentionPolicy::default().check(), Ok(()));
        assert_eq!(RetentionPolicy::FOREVER.check(), Ok(()));
    }

    #[test]
    fn what_operators_store_replaces_one_period_of_the_configuration() {
        let stored = StoredPeriod { of: Retained::Failed, keep: Keep::Forever };
        let policy = RetentionPolicy::default().with(&[stored]);
        assert_eq!(policy, RetentionPolicy { failed: Keep::Forever, ..RetentionPolicy::default() });
        for what in Retained::ALL {
            let keep = Keep::days(40);
            let changed = RetentionPolicy::FOREVER.with(&[StoredPeriod { of: *what, keep }]);
            assert_eq!(changed.of(*what), keep);
        }
        let short = StoredPeriod { of: Retained::Audit, keep: Keep::days(1) };
        assert!(short.check().is_err());
        for text in ["7d", "1h 30m", "forever", "0s"] {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_period_that_no_store_can_reckon_with_is_refused() {
        let policy = RetentionPolicy { failed: Keep::For(Duration::MAX), ..RetentionPolicy::default() };
        assert_eq!(policy.check(), Err(InvalidRetention::TooLong { field: "failed" }));
    }

    #[test]
    fn workers_stay_while_rescues_may_look_for_them() {
        let policy = RetentionPolicy { workers: Keep::For(DAY / 2), ..RetentionPolicy::default() };
        assert!(policy.check().is_err_and(|why| why.to_string().contains("a day or longer")));
    }

    #[test]
    fn the_audit_is_kept_for_thirty_days_at_least() {
        let kept_for = |audit| RetentionPolicy { audit, ..RetentionPolicy::default() };
        let short = kept_for(Keep::days(29));
        assert!(short.check().is_err_and(|why| why.to_string().contains("30 days or longer")));
        for audit in [Keep::days(30), Keep::days(400), Keep::Forever] {
            assert_eq!(kept_for(audit).check(), Ok(()));
        }
    }
}
