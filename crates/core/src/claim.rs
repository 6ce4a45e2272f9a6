//! Requests for jobs and the jobs that a claim returns.

use std::time::Duration;

use jiff::Timestamp;

use crate::ident::{BatchId, Run, WorkerId};
use crate::job::Priority;
use crate::trace::Traceparent;

/// A request for jobs.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The worker that makes the request.
    pub worker: WorkerId,
    /// An increasing number chosen by the worker. It identifies the jobs of a claim whose answer was lost.
    pub claim_id: i32,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The kinds it has handlers for.
    pub kinds: Vec<String>,
    /// The maximum number of jobs.
    pub limit: u32,
    /// Whether the claim must find every ready job, whatever the cost. Otherwise a store may start its search at the
    /// position where it last found nothing, and see a job that was committed late only a little later.
    pub thorough: bool,
}

/// A job that a worker holds under its lease.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    /// The job, and the run token that every write to the running job must carry.
    pub run: Run,
    /// The claim that returned it.
    pub claim_id: i32,
    /// Its kind, which determines the handler.
    pub kind: String,
    /// The queue it was claimed from.
    pub queue: String,
    /// Its input, as JSON text.
    pub payload: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// Its priority within the queue.
    pub priority: Priority,
    /// Its group; the job holds one of the group's slots.
    pub group: Option<String>,
    /// The batch that it is a task of.
    pub batch: Option<BatchId>,
    /// The time limit of this attempt, if the job has its own.
    pub timeout: Option<Duration>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The schedule tick that the job belongs to, however late it runs.
    pub nominal_at: Option<Timestamp>,
    /// The trace span that the job follows from.
    pub traceparent: Option<Traceparent>,
    /// How long the job was claimable before it was claimed, by the store's clock; `None` when the answer to its claim was lost
    /// and the job is returned again.
    pub waited: Option<Duration>,
}
