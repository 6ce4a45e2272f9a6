//! What operators see: jobs and queues as rows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::ident::{JobId, RunToken, WorkerId};
use crate::limit::Target;
use crate::search::LastFailure;
use crate::state::JobState;
use crate::trace::Traceparent;
use crate::worker::Progress;

/// Which jobs to list, newest first.
#[derive(Clone, Debug)]
pub struct JobFilter {
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only in this queue.
    pub queue: Option<String>,
    /// Only those with this key.
    pub key: Option<String>,
    /// Only those older than this one: the last of the page before.
    pub before: Option<JobId>,
    /// At most this many.
    pub limit: u32,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self { state: None, kind: None, queue: None, key: None, before: None, limit: 50 }
    }
}

/// A job in a list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Which handler runs it.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Where it stands.
    pub state: JobState,
    /// Which jobs of the queue go first.
    pub priority: u8,
    /// Tries so far.
    pub attempt: u32,
    /// Tries it may have.
    pub max_attempts: u32,
    /// Its key.
    pub key: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The tick of a schedule that it stands for.
    pub nominal_at: Option<Timestamp>,
    /// When it may be claimed; `None` while it runs, waits for its group or has ended.
    pub ready_at: Option<Timestamp>,
    /// When the current attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Who holds it.
    pub worker: Option<WorkerId>,
    /// The token of its last claim.
    pub token: RunToken,
}

/// Everything about one job but its history.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// What a list shows.
    #[serde(flatten)]
    pub row: JobRow,
    /// Its input.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// What its handler returned.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
    /// How far it said it is.
    pub progress: Option<Progress>,
    /// Where its next attempt can go on from.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// The span of a trace that it follows from, as W3C Trace Context writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub traceparent: Option<Traceparent>,
    /// Its last failed attempt, if one failed; later ones may have succeeded.
    pub last_failure: Option<LastFailure>,
    /// Whether somebody asked the running job to stop.
    pub stop_requested: bool,
    /// Why it does not run now, if it is to run and does not.
    pub waiting_for: Option<Waiting>,
}

/// Why a job that is to run does not run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Waiting {
    /// Its time has not come.
    Time {
        /// When it may be claimed.
        until: Timestamp,
    },
    /// All slots of its group are taken.
    Group {
        /// The group.
        group: String,
        /// Who has the first of them.
        holder: Option<JobId>,
        /// How many are taken.
        taken: u32,
    },
    /// As many of its kind or group were started as the limit of their rate allows.
    Rate {
        /// The kind or group.
        #[serde(flatten)]
        target: Target,
        /// When more may start. Others may be before it.
        until: Timestamp,
    },
    /// Its queue is paused.
    PausedQueue {
        /// The queue.
        queue: String,
    },
    /// No living worker serves its kind in its queue.
    NoWorker {
        /// The kind.
        kind: String,
        /// The queue.
        queue: String,
    },
    /// Workers serve it and are busy with others.
    Turn,
}

/// A queue and what is in it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// How many living workers serve it.
    pub workers: i64,
    /// How many of its jobs need attention, by state.
    pub counts: Vec<(JobState, i64)>,
}

/// A queue and what is in it, by kind.
#[derive(Clone, Debug)]
pub struct QueueKinds {
    /// Its name.
    pub name: String,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// How many of its jobs need attention, by kind and state.
    pub counts: Vec<KindCount>,
}

impl QueueKinds {
    /// How many of its jobs need attention, by state.
    #[must_use]
    pub fn by_state(&self) -> Vec<(JobState, i64)> {
        let mut jobs: BTreeMap<JobState, i64> = BTreeMap::new();
        for count in &self.counts {
            *jobs.entry(count.state).or_default() += count.jobs;
        }
        jobs.into_iter().collect()
    }

    /// How many of its jobs may be claimed, by kind, as far as kinds are told of one by one.
    #[must_use]
    pub fn due_by_kind(&self) -> BTreeMap<&str, i64> {
        let mut due = BTreeMap::new();
        for count in self.counts.iter().filter(|count| count.state.is_waiting()) {
            if let Some(kind) = &count.kind {
                *due.entry(kind.as_str()).or_default() += count.due;
            }
        }
        due
    }
}

/// Jobs of a queue that are of one kind and in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind; none stands for all that are not told of one by one.
    pub kind: Option<String>,
    /// The state.
    pub state: JobState,
    /// How many.
    pub jobs: i64,
    /// How many of these may be claimed: their time has come. Whether their queue is paused does not count.
    pub due: i64,
}
