//! Workers: process incarnations under a lease.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bulk::operation;
use crate::ident::{Run, WorkerId};
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_text;
use crate::retry::RetryPolicy;
use crate::transition::Verb;

/// A worker that wants to register.
#[derive(Clone, Debug, Default)]
pub struct NewWorker {
    /// For people: host name and process id, say. Never used to tell workers apart.
    pub name: String,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The kinds it has handlers for.
    pub kinds: Vec<String>,
    /// How long it may go without a heartbeat before it is declared dead.
    pub lease: Duration,
    /// How its kinds wait after a failure. Whoever rescues its jobs goes by that.
    pub backoffs: Backoffs,
}

/// Policies by kind.
pub type Backoffs = BTreeMap<String, RetryPolicy>;

/// The answer to a heartbeat that came in time.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    /// Runs of this worker that somebody asked to stop, with [`Verb::Cancel`] or [`Verb::Abort`].
    pub stops: Vec<(Run, Verb)>,
}

/// What handlers report while they run. Both are for people and for the next attempt; neither ends it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which run.
    pub run: Run,
    /// How far it is.
    pub progress: Option<Progress>,
    /// Where the next attempt can go on from, as JSON text.
    pub checkpoint: Option<String>,
}

/// Checks a checkpoint, JSON text that the next attempt must be able to read.
///
/// # Errors
/// What is wrong with it, for people.
pub fn check_checkpoint(checkpoint: &str) -> Result<(), String> {
    let checked = check_text(checkpoint, PAYLOAD_BYTES_MAX);
    checked.map_err(|invalid| invalid.to_string().replace("the payload", "the checkpoint"))
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// Units done.
    pub done: i64,
    /// Units in all, when known.
    pub total: Option<i64>,
    /// A word for people.
    pub message: Option<String>,
}

/// A worker as operators see it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Its name for people.
    pub name: String,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The kinds it has handlers for.
    pub kinds: Vec<String>,
    /// When it registered.
    pub started_at: Timestamp,
    /// Its last heartbeat.
    pub heartbeat_at: Timestamp,
    /// When it left or was declared dead.
    pub ended_at: Option<Timestamp>,
    /// Whether it was declared dead rather than having left.
    pub died: bool,
    /// How many jobs it holds now.
    pub running: i64,
}

impl WorkerView {
    /// Whether it runs users' jobs. A server keeps a worker that only does to jobs what operators ask for.
    #[must_use]
    pub fn runs_jobs(&self) -> bool {
        self.kinds != [operation::NAME]
    }
}

/// A job taken back from a dead worker.
#[derive(Clone, Debug)]
pub struct Rescued {
    /// The run that was lost; its token is fenced now.
    pub run: Run,
    /// The worker that held it.
    pub worker: WorkerId,
    /// [`Verb::Retry`] or, with attempts spent, [`Verb::Fail`]; [`Verb::Cancel`] or [`Verb::Abort`] when that was asked for.
    pub verb: Verb,
}
