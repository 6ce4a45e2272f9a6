//! Losses of the last commits of a store, as a failover to an asynchronous standby and a restore cause them.

use serde::{Deserialize, Serialize};

/// The loss of all commits of a time. The lost server and the new one were compared before a process could write to the new one, so its rows are
/// not lost by a defect of the product.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// Its number, from 1.
    pub number: u32,
    /// Every commit that was acknowledged before this time is kept, by the clock of the machine.
    pub since_ms: i64,
    /// When the lost server had stopped: it has committed nothing later.
    pub until_ms: i64,
    /// The highest position in the history of jobs that is kept.
    pub last_pos: i64,
    /// The rows of the lost server that are missing on the new one.
    pub rows: Vec<LostRow>,
}

/// A row that a loss has removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "lost", rename_all = "snake_case")]
pub enum LostRow {
    /// A job.
    Job {
        /// Its id.
        job: String,
    },
    /// A state change of a job.
    Change {
        /// Its position in the store's log, which the new server can assign again.
        pos: i64,
        /// The job.
        job: String,
        /// The verb.
        verb: String,
        /// The run token after the change.
        token: u64,
        /// Whether it ended a run.
        is_end: bool,
    },
    /// A batch.
    Batch {
        /// Its id.
        batch: String,
    },
    /// An event of the log.
    Event {
        /// Its id.
        event: String,
        /// Its aggregate.
        aggregate: String,
        /// Its number in the aggregate, which the new server assigns again.
        sequence: u64,
    },
    /// An entry of the audit.
    Audit {
        /// The text that only one operation has.
        mark: String,
    },
}
