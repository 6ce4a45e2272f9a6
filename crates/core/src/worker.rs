//! Workers: process incarnations with a lease, and their reports.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bulk::operation;
use crate::ident::{Run, WorkerId};
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_text;
use crate::retry::RetryPolicy;
use crate::transition::Verb;

/// A worker to be registered.
#[derive(Clone, Debug, Default)]
pub struct NewWorker {
    /// A name for operators, such as host name and process id. It does not identify the worker.
    pub name: String,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The kinds it has handlers for.
    pub kinds: Vec<String>,
    /// The maximum time without a heartbeat before the worker is declared dead.
    pub lease: Duration,
    /// The backoffs of its kinds, used by the process that rescues its jobs.
    pub backoffs: Backoffs,
    /// The maximum number of jobs that it runs at the same time, for operators; `None` if it does not say.
    pub slots: Option<NonZeroU32>,
}

/// Retry policies by kind.
pub type Backoffs = BTreeMap<String, RetryPolicy>;

/// The answer to a heartbeat that arrived in time.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    /// Runs of this worker that are to stop, with [`Verb::Cancel`] or [`Verb::Abort`].
    pub stops: Vec<(Run, Verb)>,
}

/// A report of a running handler. Progress is for operators, the checkpoint is for the next attempt; neither ends the attempt.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run.
    pub run: Run,
    /// The progress of the run.
    pub progress: Option<Progress>,
    /// The state from which the next attempt can resume, as JSON text.
    pub checkpoint: Option<String>,
}

/// Checks that a checkpoint is JSON text that the next attempt can read.
///
/// # Errors
/// A description of the problem.
pub fn check_checkpoint(checkpoint: &str) -> Result<(), String> {
    let checked = check_text(checkpoint, PAYLOAD_BYTES_MAX);
    checked.map_err(|invalid| invalid.to_string().replace("the payload", "the checkpoint"))
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// The number of units done.
    pub done: i64,
    /// The total number of units, if known.
    pub total: Option<i64>,
    /// A text for users.
    pub message: Option<String>,
}

/// A worker, as shown to operators.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its display name.
    pub name: String,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// The kinds that it has handlers for.
    pub kinds: Vec<String>,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it last sent a heartbeat.
    pub heartbeat_at: Timestamp,
    /// Whether its lease has expired without a new heartbeat. It is declared dead as soon as another worker notices.
    pub lease_expired: bool,
    /// When it left or was declared dead.
    pub ended_at: Option<Timestamp>,
    /// Whether it was declared dead; false if it left.
    pub died: bool,
    /// The number of jobs that it holds now.
    pub running: i64,
    /// The maximum number of jobs that it runs at the same time; none if it did not say.
    pub slots: Option<u32>,
}

impl WorkerView {
    /// Returns whether the worker runs users' jobs. A server has a worker that only performs operations that operators
    /// request for many jobs.
    #[must_use]
    pub fn runs_jobs(&self) -> bool {
        self.kinds != [operation::NAME]
    }

    /// Returns how many of its slots are in use, such as `2 of 8`.
    #[must_use]
    pub fn load(&self) -> String {
        match self.slots {
            Some(slots) => format!("{} of {slots}", self.running),
            None => self.running.to_string(),
        }
    }

    /// Returns whether the worker has not ended.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Returns whether the worker serves a queue and has a handler for a kind.
    #[must_use]
    pub fn serves(&self, queue: &str, kind: &str) -> bool {
        self.queues.iter().any(|its| its == queue) && self.kinds.iter().any(|its| its == kind)
    }
}

/// A job rescued from a dead worker.
#[derive(Clone, Debug)]
pub struct Rescued {
    /// The lost run, whose token is now outdated.
    pub run: Run,
    /// The worker that held it.
    pub worker: WorkerId,
    /// [`Verb::Retry`], or [`Verb::Fail`] when all attempts are used; [`Verb::Cancel`] or [`Verb::Abort`] when that was requested.
    pub verb: Verb,
}
