//! Rows of jobs and queues as shown to operators.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::event::StartedBy;
use crate::format::{relative, several};
use crate::ident::{JobId, RunToken, WorkerId};
use crate::job::IDEMPOTENCY_PREFIX;
use crate::limit::Target;
use crate::state::JobState;
use crate::trace::Traceparent;
use crate::worker::Progress;

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

impl JobRow {
    /// Returns the key that its creator chose; `None` for one that was derived from an idempotency key.
    #[must_use]
    pub fn chosen_key(&self) -> Option<&str> {
        self.key.as_deref().filter(|key| !key.starts_with(IDEMPOTENCY_PREFIX))
    }
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct JobsFound {
    /// The jobs, newest first.
    pub rows: Vec<JobRow>,
    /// The position where the next page starts; `None`: all jobs were read. A next page can exist although nothing was found.
    pub next: Option<JobId>,
}

/// The last failed attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastFailure {
    /// The job.
    #[serde(skip)]
    pub job: JobId,
    /// When it failed.
    pub at: Timestamp,
    /// The stable code of the failure, such as `exec_1`.
    pub code: Option<String>,
    /// The failure message; in lists its first [`LISTED_CHARS_MAX`] characters.
    pub message: Option<String>,
}

/// The number of characters of a failure message that a list shows.
pub const LISTED_CHARS_MAX: i32 = 500;

impl JobsFound {
    /// Creates a page of at most `limit` matching jobs. `found`: the ids of all of them, also of those whose rows cannot be read. `looked_to`: the last
    /// job that the search read; `None`: it read all.
    #[must_use]
    pub fn page(rows: Vec<JobRow>, found: &[JobId], limit: u32, looked_to: Option<JobId>) -> Self {
        let is_full = found.len() >= limit as usize;
        Self { rows, next: found.last().copied().filter(|_| is_full).or(looked_to) }
    }
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
    /// The event that started it, if a subscription did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<StartedBy>,
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
    /// The tokens of its group's rate are reserved for jobs that have their slots and that no worker has claimed yet.
    Reserved {
        /// The group.
        group: String,
        /// The number of these jobs.
        jobs: u32,
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
    /// Workers serve it, but have not claimed it yet.
    Turn,
}

/// What decides why a waiting job does not run now. Each store reads what matters for the state of the job, and leaves the rest at its default.
#[derive(Clone, Debug, Default)]
pub struct WaitFacts {
    /// The time before which it is not due, if that is in the future.
    pub due_at: Option<Timestamp>,
    /// The time at which the rate of its group allows the next start, if the group has a free slot but no token.
    pub group_opens_at: Option<Timestamp>,
    /// The number of jobs whose start its group's rate has reserved, if they have all of its tokens.
    pub group_reserved: u32,
    /// A job that holds a slot of its group.
    pub group_holder: Option<JobId>,
    /// The number of taken slots of its group.
    pub group_taken: u32,
    /// Whether its queue is paused.
    pub queue_paused: bool,
    /// Whether a worker serves its kind and its queue.
    pub served: bool,
    /// The time at which the rate of its kind allows the next start, if it allows none now.
    pub kind_opens_at: Option<Timestamp>,
}

impl Waiting {
    /// Describes why the job does not run.
    #[must_use]
    pub fn in_words(&self, now: Timestamp) -> String {
        match self {
            Self::Time { until } => format!("it is due {}", relative(*until, now)),
            Self::Group { group, holder: Some(job), taken: 0..=1 } => {
                format!("group {group} is taken by job {job}")
            }
            Self::Group { group, holder: Some(job), taken } => {
                format!("all {taken} slots of group {group} are taken, the first by job {job}")
            }
            Self::Group { group, holder: None, .. } => format!("group {group} is taken"),
            Self::Rate { target, until } => {
                let until = relative(*until, now);
                format!("the rate limit of {target} is reached: the next start is possible {until}")
            }
            Self::Reserved { group, jobs } => format!(
                "the tokens of group {group} are reserved for {} that no worker has claimed yet",
                several(u64::from(*jobs), "job", "jobs")
            ),
            Self::PausedQueue { queue } => format!("queue {queue} is paused"),
            Self::NoWorker { kind, queue } => format!("no active worker serves kind {kind} in queue {queue}"),
            Self::Turn => "it waits until a worker that serves it has a free place".to_owned(),
        }
    }

    /// Returns why a job does not run now; `None` if it is not waiting.
    #[must_use]
    pub fn of(job: &JobRow, facts: WaitFacts) -> Option<Self> {
        if !matches!(job.state, JobState::Blocked | JobState::Pending | JobState::RetryWait) {
            return None;
        }
        if let Some(until) = facts.due_at {
            return Some(Self::Time { until });
        }
        if job.state == JobState::Blocked {
            let group = job.group.clone()?;
            return Some(match facts.group_opens_at {
                Some(_) if facts.group_reserved > 0 => Self::Reserved { group, jobs: facts.group_reserved },
                Some(until) => Self::Rate { target: Target::Group(group), until },
                None => Self::Group { group, holder: facts.group_holder, taken: facts.group_taken },
            });
        }
        Some(if facts.queue_paused {
            Self::PausedQueue { queue: job.queue.clone() }
        } else if !facts.served {
            Self::NoWorker { kind: job.kind.clone(), queue: job.queue.clone() }
        } else if let Some(until) = facts.kind_opens_at {
            Self::Rate { target: Target::Kind(job.kind.clone()), until }
        } else {
            Self::Turn
        })
    }
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
    /// When the job that has waited longest for a claim became due, if a job is due.
    pub oldest_due_at: Option<Timestamp>,
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
    /// Returns the number of jobs that wait for a claim.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        self.counts.iter().filter(|count| count.state.is_waiting()).map(|count| count.jobs).sum()
    }

    /// Returns when the job that has waited longest for a claim became due; `None` if no job is due.
    #[must_use]
    pub fn oldest_due_at(&self) -> Option<Timestamp> {
        self.counts.iter().filter_map(|count| count.oldest_due_at).min()
    }

    /// Returns the number of its unfinished jobs.
    #[must_use]
    pub fn jobs(&self) -> i64 {
        self.counts.iter().map(|count| count.jobs).sum()
    }

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
    /// When the first of the due jobs became due; `None` if none is.
    pub oldest_due_at: Option<Timestamp>,
}
