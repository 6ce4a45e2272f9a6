//! Rows of jobs and queues as shown to operators.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::ident::{JobId, RunToken, WorkerId};
use crate::limit::Target;
use crate::search::{LastFailure, PayloadMatch};
use crate::state::JobState;
use crate::trace::Traceparent;
use crate::worker::Progress;

/// Which jobs to find, newest first, and which page of them. A job must match all given fields.
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
    /// Only those with a failed attempt that has this error code, or this text in its message (case-insensitive).
    pub error: Option<String>,
    /// Only those whose payload matches.
    pub payload: Option<PayloadMatch>,
    /// Only those created at this time or later.
    pub created_from: Option<Timestamp>,
    /// Only those created before this time.
    pub created_before: Option<Timestamp>,
    /// Only those that failed permanently at this time or later, and are still failed.
    pub failed_from: Option<Timestamp>,
    /// Only those older than this one: the position where the previous page ended.
    pub before: Option<JobId>,
    /// The number of jobs that a search reads before it returns; `None`: [`SCAN_MAX`](crate::search::SCAN_MAX), which is also the maximum.
    pub scan: Option<u32>,
    /// The maximum number of results.
    pub limit: u32,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self {
            state: None,
            kind: None,
            queue: None,
            key: None,
            error: None,
            payload: None,
            created_from: None,
            created_before: None,
            failed_from: None,
            before: None,
            scan: None,
            limit: 50,
        }
    }
}

impl JobFilter {
    /// Returns whether the jobs themselves must be searched, because no index finds them: for errors, payloads and times, and for a kind
    /// or a queue, of which few jobs may match among many. A key identifies its jobs.
    #[must_use]
    pub fn needs_search(&self) -> bool {
        let of_some = self.key.is_none() && (self.kind.is_some() || self.queue.is_some());
        let times = [self.created_from, self.created_before, self.failed_from];
        of_some || self.error.is_some() || self.payload.is_some() || times.iter().any(Option::is_some)
    }
}

/// A job in a list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Its kind, which determines the handler.
    pub kind: String,
    /// The queue in which it waits.
    pub queue: String,
    /// Its state.
    pub state: JobState,
    /// Its priority within the queue; 1 is claimed first.
    pub priority: u8,
    /// The number of attempts so far.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// Its key.
    pub key: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The tick of the schedule that created it.
    pub nominal_at: Option<Timestamp>,
    /// When it may be claimed; none while it runs, waits for its group or has ended.
    pub ready_at: Option<Timestamp>,
    /// When the current attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The worker that holds it.
    pub worker: Option<WorkerId>,
    /// The token of its last claim.
    pub token: RunToken,
}

/// The details of a job, without its history.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// The job, as shown in lists.
    #[serde(flatten)]
    pub row: JobRow,
    /// Its input.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// The result of its handler.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
    /// The progress that it last reported.
    pub progress: Option<Progress>,
    /// Its checkpoint, from which the next attempt can continue.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// The trace span that it follows from, in the format of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub traceparent: Option<Traceparent>,
    /// Its last failed attempt, if any; later attempts may have succeeded.
    pub last_failure: Option<LastFailure>,
    /// Whether the running job was asked to stop.
    pub stop_requested: bool,
    /// Why it does not run now; none if it is not waiting to run.
    pub waiting_for: Option<Waiting>,
}

/// Why a job that is to run does not run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Waiting {
    /// Its start time is in the future.
    Time {
        /// When it may be claimed.
        until: Timestamp,
    },
    /// All slots of its group are taken.
    Group {
        /// The group.
        group: String,
        /// The job that holds the first of them.
        holder: Option<JobId>,
        /// The number of slots that are taken.
        taken: u32,
    },
    /// The rate limit of its kind or group allows no further start now.
    Rate {
        /// The kind or group.
        #[serde(flatten)]
        target: Target,
        /// When the limit allows more starts. Other jobs may start before this one.
        until: Timestamp,
    },
    /// Its queue is paused.
    PausedQueue {
        /// The queue.
        queue: String,
    },
    /// No active worker serves its kind in its queue.
    NoWorker {
        /// The kind.
        kind: String,
        /// The queue.
        queue: String,
    },
    /// Workers serve it, but are busy with other jobs.
    Turn,
}

/// A queue and its jobs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// When it was paused, if it is paused.
    pub paused_at: Option<Timestamp>,
    /// The number of active workers that serve it.
    pub workers: i64,
    /// The number of its jobs that have not ended, by state.
    pub counts: Vec<(JobState, i64)>,
}

/// A queue and its jobs by kind.
#[derive(Clone, Debug)]
pub struct QueueKinds {
    /// Its name.
    pub name: String,
    /// The time at which it was paused; `None` if it is not paused.
    pub paused_at: Option<Timestamp>,
    /// The number of its unfinished jobs, by kind and state.
    pub counts: Vec<KindCount>,
}

impl QueueKinds {
    /// Returns the number of its unfinished jobs by state.
    #[must_use]
    pub fn by_state(&self) -> Vec<(JobState, i64)> {
        let mut jobs: BTreeMap<JobState, i64> = BTreeMap::new();
        for count in &self.counts {
            *jobs.entry(count.state).or_default() += count.jobs;
        }
        jobs.into_iter().collect()
    }

    /// Returns the number of its claimable jobs by kind, for the kinds that are listed individually.
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

/// The number of jobs of a queue that have one kind and one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind; `None` for the sum of the kinds that are not listed individually.
    pub kind: Option<String>,
    /// The state.
    pub state: JobState,
    /// The number of jobs.
    pub jobs: i64,
    /// The number of these that are due for a claim. A pause of the queue is not considered.
    pub due: i64,
}
