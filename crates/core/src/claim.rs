//! Taking jobs: what a worker asks for and what it gets.

use std::time::Duration;

use jiff::Timestamp;

use crate::ident::{BatchId, Run, WorkerId};
use crate::job::Priority;
use crate::trace::Traceparent;

/// A request for jobs.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who asks.
    pub worker: WorkerId,
    /// Made by the worker and rising, so that it can tell a claim whose answer was lost.
    pub claim_id: i32,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The kinds it has handlers for.
    pub kinds: Vec<String>,
    /// At most this many jobs.
    pub limit: u32,
    /// Whether nothing that is ready may be overlooked, however dear that is: a store may else begin where it found
    /// nothing before, and see a job that was committed late a little later.
    pub thorough: bool,
}

/// A job that a worker now holds under its lease.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    /// The job and the token that every write of it must carry.
    pub run: Run,
    /// The claim that took it.
    pub claim_id: i32,
    /// Which handler runs it.
    pub kind: String,
    /// Where it waited.
    pub queue: String,
    /// Its input, as JSON text.
    pub payload: String,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// The last try.
    pub max_attempts: u32,
    /// Which jobs of the queue go first.
    pub priority: Priority,
    /// Its group, whose slot it holds.
    pub group: Option<String>,
    /// The batch whose task it is.
    pub batch: Option<BatchId>,
    /// How long this attempt may take, when the job itself says so.
    pub timeout: Option<Duration>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The tick of a schedule that it stands for, however late it runs.
    pub nominal_at: Option<Timestamp>,
    /// The span of a trace that it follows from.
    pub traceparent: Option<Traceparent>,
    /// For how long it could have been claimed before it was, by the store's clock; none when the answer to its claim was lost and
    /// it is told of again.
    pub waited: Option<Duration>,
}
