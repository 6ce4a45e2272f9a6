//! What clients, workers and operators asked for, and what they were answered.

use serde::{Deserialize, Serialize};

/// One call, with its begin and end by the clock of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The client.
    pub client: String,
    /// When the call began, in milliseconds since 1970.
    pub began_ms: i64,
    /// When its answer arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The store that was called. Missing if there is only one; `old` and `new` in runs with a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// What was asked for.
    #[serde(flatten)]
    pub what: What,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was acknowledged.
    Ok,
    /// It was refused, or its transaction was rolled back: it has changed nothing.
    Failed,
    /// No answer arrived: it may or may not have changed something.
    Unknown,
}

/// The answer to the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndAnswer {
    /// Stored.
    Accepted,
    /// It had been stored before.
    Repeated,
    /// The run token is outdated; nothing was changed.
    Fenced,
}

/// A job that a call asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskedJob {
    /// The id that the caller chose.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The id in the answer, which is another one if the key had a job already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// What a call asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum What {
    /// Store these jobs, in one transaction.
    Enqueue {
        /// The jobs.
        jobs: Vec<AskedJob>,
    },
    /// Hold a job until a time of the store's clock: a claim, or a renewal.
    Lease {
        /// The job.
        job: String,
        /// The run token.
        token: u64,
        /// The end of the lease.
        until_ms: i64,
    },
    /// End a run.
    End {
        /// The job.
        job: String,
        /// The run token.
        token: u64,
        /// The verb, as in the history.
        verb: String,
        /// The answer; missing if none arrived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<EndAnswer>,
    },
    /// An operator's action, or another one that is audited.
    Act {
        /// A text that only this call has, and that its row in the audit contains.
        mark: String,
        /// Whether it changed something, if it was acknowledged.
        changed: bool,
        /// The job that has not ended any more by it, if it succeeded before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revived: Option<String>,
    },
    /// Start a run of a bulk job.
    StartBulk {
        /// The run.
        run: String,
        /// The keys of the targets that it must apply.
        targets: Vec<String>,
        /// The keys of targets that it may also apply: they were written while the run began.
        #[serde(default)]
        optional: Vec<String>,
        /// Whether the effects are in the store's own database.
        in_store: bool,
    },
    /// Abort a run of a bulk job.
    AbortBulk {
        /// The run.
        run: String,
    },
    /// Resume an aborted run of a bulk job.
    ResumeBulk {
        /// The run.
        run: String,
    },
    /// Start a batch.
    StartBatch {
        /// The batch, as the answer names it.
        batch: String,
        /// Its key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The version of its DAG.
        version: u64,
    },
    /// Send the signal that a task of a batch waits for.
    Signal {
        /// The batch.
        batch: String,
        /// The task.
        task: String,
    },
    /// Emit an event.
    Emit {
        /// The id that the caller chose.
        event: String,
        /// Its aggregate.
        aggregate: String,
        /// Its payload.
        payload: String,
    },
    /// Move the store `old` to the store `new`. The end of the call is the moment from which on `old` is closed.
    Move,
}
