//! How long what is over is kept.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::duration::WAIT_MAX;
use crate::state::JobState;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// For so long the lists show workers that ended, and rescues look for what they left behind.
const WORKERS_MIN: Duration = DAY;
/// Entries of the audit are kept for so long at least, whatever a policy says. A trigger of the PostgreSQL store enforces it.
pub const AUDIT_MIN: Duration = Duration::from_secs(30 * DAY.as_secs());

/// How long something is kept after it was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// For so long.
    For(Duration),
    /// Until somebody decides otherwise.
    Forever,
}

impl Keep {
    /// For so many days.
    #[must_use]
    pub const fn days(days: u32) -> Self {
        Self::For(Duration::from_secs(days as u64 * 24 * 3600))
    }

    /// The period; `None` when there is none.
    #[must_use]
    pub const fn period(self) -> Option<Duration> {
        match self {
            Self::For(period) => Some(period),
            Self::Forever => None,
        }
    }
}

/// Periods for all that would otherwise grow without end. Whatever still needs attention is kept whatever these
/// say, but for dead letters; jobs that an operator aborted wait for him.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionPolicy {
    /// Jobs that succeeded, from their end.
    pub succeeded: Keep,
    /// Jobs that were canceled or skipped, from their end.
    pub canceled: Keep,
    /// Dead letters, from their failure.
    pub failed: Keep,
    /// What happened to jobs that ended, from their end; the last entry, which tells the state, stays with the
    /// job. At most as long as the job.
    pub history: Keep,
    /// Keys, from the end of their job. At least as long as the job: zero means exactly that.
    pub keys: Keep,
    /// Workers that ended, from their end.
    pub workers: Keep,
    /// Batches, from their end; the jobs of a batch stay at least as long as it.
    pub batches: Keep,
    /// Ids of events that consumers took in once, from then: one that comes again later than that is new to them. What inboxes
    /// gave up is kept as long as dead letters.
    pub inbox: Keep,
    /// Events in the log, from their emission; those that a subscription has not gone past, that are parked or were given up
    /// stay.
    pub events: Keep,
    /// What people did, from then: [`AUDIT_MIN`] at least.
    pub audit: Keep,
}

impl Default for RetentionPolicy {
    /// A week for what went well or was called off, ninety days for dead letters, history and keys with their
    /// job, a week for workers, batches and events, two weeks for the ids of events that were taken in, and a good year for
    /// the audit.
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
    /// Nothing is ever forgotten.
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

    /// How long a job is kept that came to stand in this state. What still needs attention is kept for ever.
    #[must_use]
    pub const fn job(&self, state: JobState) -> Keep {
        match state {
            JobState::Succeeded => self.succeeded,
            JobState::Canceled | JobState::Skipped => self.canceled,
            JobState::Failed => self.failed,
            _ => Keep::Forever,
        }
    }

    /// Refuses periods that no store can keep.
    ///
    /// # Errors
    /// [`InvalidRetention`] names the period, what is wrong with it and what to do.
    pub fn check(&self) -> Result<(), InvalidRetention> {
        let periods = [
            ("succeeded", self.succeeded),
            ("canceled", self.canceled),
            ("failed", self.failed),
            ("history", self.history),
            ("keys", self.keys),
            ("workers", self.workers),
            ("batches", self.batches),
            ("inbox", self.inbox),
            ("events", self.events),
            ("audit", self.audit),
        ];
        for (field, keep) in periods {
            if keep.period().is_some_and(|period| period > WAIT_MAX) {
                return Err(InvalidRetention::TooLong { field });
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

/// A retention that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidRetention {
    /// A period beyond what can be reckoned with.
    #[error("the retention of {field} is longer than a hundred years; say forever")]
    TooLong {
        /// Which period.
        field: &'static str,
    },
    /// Rescues look for what a worker left behind for a day after its end.
    #[error("workers are kept for {period:?} after their end; it must be a day or longer")]
    WorkersTooShort {
        /// The period.
        period: Duration,
    },
    /// The audit must outlast what is done to hide something.
    #[error("entries of the audit are kept for {period:?}; it must be 30 days or longer")]
    AuditTooShort {
        /// The period.
        period: Duration,
    },
}

/// How much is taken at a time, and how much room is left for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// At most so many jobs, keys or workers a transaction. History is taken in portions of as many rows.
    pub limit: u32,
    /// For so many times as long as it took, nobody who rests prunes after this. Zero does not rest, and does not
    /// wait for the turn of those who do.
    pub rest: u32,
}

/// How many there are to forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prunable {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that were canceled or skipped.
    pub canceled: u64,
    /// Dead letters.
    pub failed: u64,
    /// Jobs whose history goes before them.
    pub histories: u64,
    /// Keys that outlived their jobs.
    pub keys: u64,
    /// Workers.
    pub workers: u64,
    /// Batches that are no tasks of others.
    pub batches: u64,
    /// Ids of events that consumers took in.
    pub inbox: u64,
    /// Dead letters of inboxes.
    pub inbox_dead: u64,
    /// Events. They are not counted beforehand.
    pub events: u64,
    /// Entries of the audit.
    pub audit: u64,
}

impl Prunable {
    /// The count that a job in this state belongs to.
    #[must_use]
    pub const fn jobs_in(&mut self, state: JobState) -> &mut u64 {
        match state {
            JobState::Succeeded => &mut self.succeeded,
            JobState::Failed => &mut self.failed,
            _ => &mut self.canceled,
        }
    }

    /// Jobs in any state.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.succeeded + self.canceled + self.failed
    }

    /// All that is counted.
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

/// What a call of prune forgot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// By what it was.
    #[serde(flatten)]
    pub what: Prunable,
    /// Rows deleted in all tables.
    pub rows: u64,
    /// Whether a batch was full, so that more may be due.
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
    use super::*;

    #[test]
    fn the_defaults_and_forever_can_be_kept() {
        assert_eq!(RetentionPolicy::default().check(), Ok(()));
        assert_eq!(RetentionPolicy::FOREVER.check(), Ok(()));
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
