//! The deletion of old rows: the size of its portions, and what they deleted.

use std::ops::AddAssign;

use serde::Serialize;

use crate::state::JobState;

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
