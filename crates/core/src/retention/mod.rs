//! Retention periods of finished jobs, batches, events and audit entries.

mod period;
mod pruned;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::period::{Keep, Retained, RetentionPeriod};
pub use self::pruned::{Pace, Prunable, Pruned};
use crate::duration::{WAIT_MAX, exact};
use crate::state::JobState;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The minimum retention of stopped workers: lists show them, and rescues search for jobs they left behind, for this long.
const WORKERS_MIN: Duration = DAY;
/// The minimum retention of audit entries, whatever a policy specifies. A trigger of the PostgreSQL store enforces it.
pub const AUDIT_MIN: Duration = Duration::from_secs(30 * DAY.as_secs());

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

    /// Returns this policy with these periods instead of its own.
    #[must_use]
    pub fn with(mut self, periods: impl IntoIterator<Item = RetentionPeriod>) -> Self {
        for RetentionPeriod { of, keep } in periods {
            *self.of_mut(of) = keep;
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
    #[error("workers are kept for {} after their end; it must be a day or longer", exact(*period))]
    WorkersTooShort {
        /// The period.
        period: Duration,
    },
    /// The period of the audit is shorter than [`AUDIT_MIN`]. The audit must not be prunable to hide an action.
    #[error("entries of the audit are kept for {}; it must be 30 days or longer", exact(*period))]
    AuditTooShort {
        /// The period.
        period: Duration,
    },
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
        let stored = RetentionPeriod { of: Retained::Failed, keep: Keep::Forever };
        let policy = RetentionPolicy::default().with([stored]);
        assert_eq!(policy, RetentionPolicy { failed: Keep::Forever, ..RetentionPolicy::default() });
        for what in Retained::ALL {
            let keep = Keep::days(40);
            let changed = RetentionPolicy::FOREVER.with([RetentionPeriod { of: *what, keep }]);
            assert_eq!(changed.of(*what), keep);
        }
        let short = RetentionPeriod { of: Retained::Audit, keep: Keep::days(1) };
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
