//! Rows of the store at the end of a run.

use serde::{Deserialize, Serialize};

use super::loss::Loss;

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The schedule and the tick that made it, as `SCHEDULE TIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<String>,
    /// Its state.
    pub state: String,
    /// Its last run token.
    pub token: u64,
    /// The maximum number of attempts.
    pub max_attempts: u32,
}

/// A state change of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Its position in the store's log.
    pub pos: i64,
    /// The job.
    pub job: String,
    /// The verb.
    pub verb: String,
    /// The state before; missing at the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state after.
    pub to: String,
    /// The attempt.
    pub attempt: u32,
    /// The run token after the change.
    pub token: u64,
    /// When, by the store's clock.
    pub at_ms: i64,
    /// When the job may be claimed next, if the change sets this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at_ms: Option<i64>,
    /// The code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// A task of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The batch.
    pub batch: String,
    /// Its key in the batch.
    pub task: String,
    /// Its job; missing if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The keys of its predecessors.
    #[serde(default)]
    pub after: Vec<String>,
    /// The number of predecessors that have not ended.
    pub open_predecessors: i64,
    /// Its state.
    pub state: String,
}

/// A row of the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub enum Row {
    /// A job.
    Job(Job),
    /// A state change of a job.
    Change(Change),
    /// A kind whose handlers commit an effect together with the success of the job.
    Effectful {
        /// The kind.
        kind: String,
    },
    /// An effect that was committed together with the success of a job.
    Effect {
        /// The job.
        job: String,
        /// The run token.
        token: u64,
    },
    /// Retention is on: ended jobs may be missing.
    Retention,
    /// The limit of a group: at most so many jobs at a time.
    GroupLimit {
        /// The group.
        group: String,
        /// The number of slots.
        slots: usize,
    },
    /// The rate limit of a kind.
    Rate {
        /// The kind.
        kind: String,
        /// Starts per second.
        per_s: f64,
        /// Starts at once.
        burst: u32,
    },
    /// A schedule that makes a job for each of these ticks.
    Schedule {
        /// Its name.
        name: String,
        /// The ticks that were due, as in [`Job::tick`] without the name.
        due: Vec<String>,
    },
    /// A target of a bulk job that is recorded as a failure.
    FailedTarget {
        /// The run.
        run: String,
        /// The key of the target.
        key: String,
    },
    /// A batch.
    Batch {
        /// Its id.
        id: String,
        /// Its state.
        state: String,
        /// The version of its DAG.
        version: u64,
    },
    /// A task of a batch.
    Task(Task),
    /// An event of the log.
    Event {
        /// Its id.
        id: String,
        /// Its aggregate.
        aggregate: String,
        /// Its number in the aggregate, from 1.
        sequence: u64,
        /// Its payload.
        payload: String,
        /// The position of the change that it describes, if it describes one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<i64>,
    },
    /// State changes of jobs of this kind are events.
    Recorded {
        /// The kind.
        kind: String,
    },
    /// A subscription that selects all events that describe no state change, or those that do.
    Subscription {
        /// Its name.
        name: String,
        /// Whether it selects state changes.
        changes: bool,
    },
    /// A consumer that takes all events that describe no state change.
    Consumer {
        /// Its name.
        name: String,
    },
    /// A subscription of which each event that describes no state change starts a job.
    Starter {
        /// Its name.
        name: String,
    },
    /// A job that an event has started.
    Started {
        /// The subscription.
        by: String,
        /// The event.
        event: String,
    },
    /// An event that was abandoned: a dead letter, or skipped.
    Abandoned {
        /// The subscription or consumer.
        by: String,
        /// The event.
        event: String,
    },
    /// An entry of the audit.
    Audit {
        /// The text that only one operation has.
        mark: String,
    },
    /// A loss of the last commits, which are missing from the other rows.
    Loss(Loss),
}
