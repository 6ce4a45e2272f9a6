//! The work that a schedule creates at each tick: a job or a batch.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{InvalidSchedule, as_ms_opt};
use crate::batch::error::InvalidBatch;
use crate::batch::nominal::NominalTime;
use crate::batch::start::{NewBatch, Started};
use crate::dag::expression::{LITTLE_STEPS_MAX, Scope, Values};
use crate::dag::template::Template;
use crate::ident::{BatchId, JobId};
use crate::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};
use crate::json::Exact;
use crate::trace::Traceparent;

/// What each tick of a schedule creates.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Makes {
    /// A job.
    Job(JobTemplate),
    /// A batch.
    Batch(BatchTemplate),
}

/// The common properties of all jobs of a schedule.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobTemplate {
    /// Their kind, which determines the handler.
    pub kind: String,
    /// The queue in which they wait.
    pub queue: String,
    /// Their input, as JSON text.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// Their priority within the queue; 1 is claimed first.
    #[cfg_attr(feature = "openapi", schema(value_type = u8))]
    pub priority: Priority,
    /// The maximum number of attempts of each job; a crash of its worker uses one.
    pub max_attempts: u32,
    /// Their group. Jobs of a group run one at a time, or up to the number that its limit allows.
    pub group: Option<String>,
    /// The time limit of one attempt.
    #[serde(rename = "timeout_ms", serialize_with = "as_ms_opt")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub timeout: Option<Duration>,
}

/// The common properties of all batches of a schedule. Each batch gets the version that is the latest at its tick.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchTemplate {
    /// The name of their DAG.
    pub dag: String,
    /// Their input, as JSON text. Strings in it can contain `${ … }` with expressions over `tick`.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub input: Box<RawValue>,
}

impl Makes {
    /// Returns the job or batch for this tick, with this key.
    pub(super) fn order(
        &self,
        key: impl FnOnce(uuid::Uuid) -> String,
        tick: NominalTime,
    ) -> Result<Order, InvalidBatch> {
        Ok(match self.clone() {
            Self::Job(JobTemplate { kind, queue, payload, priority, max_attempts, group, timeout }) => {
                let id = JobId::new();
                Order::Job(NewJob {
                    id,
                    on_duplicate: None,
                    key: Some(key(id.0)),
                    nominal_at: Some(tick.at),
                    start: StartAt::Now,
                    kind,
                    queue,
                    payload,
                    priority,
                    max_attempts,
                    group,
                    timeout,
                    traceparent: Traceparent::current(),
                })
            }
            Self::Batch(template) => {
                let (id, input) = (BatchId::new(), template.input_at(&tick)?);
                let (key, nominal) = (Some(key(id.0)), Some(tick));
                let traceparent = Traceparent::current();
                let dag = template.dag;
                Order::Batch(NewBatch { id, dag, version: None, key, input, nominal, traceparent })
            }
        })
    }

    /// Returns how many ticks one transaction processes; the remaining ones stay due. Batches are limited to one
    /// because they may have very many tasks.
    pub(super) const fn at_once(&self) -> usize {
        match self {
            Self::Job(_) => 500,
            Self::Batch(_) => 1,
        }
    }

    /// Returns the values of a store's columns: the DAG and the job columns. For batches, the payload column contains
    /// the input, and the other job columns are unused.
    #[must_use]
    pub fn columns(&self) -> (Option<&str>, JobTemplate) {
        match self {
            Self::Job(job) => (None, job.clone()),
            Self::Batch(BatchTemplate { dag, input }) => {
                let job = JobTemplate {
                    kind: String::new(),
                    queue: String::new(),
                    payload: input.clone(),
                    priority: Priority::default(),
                    max_attempts: 1,
                    group: None,
                    timeout: None,
                };
                (Some(dag), job)
            }
        }
    }

    /// Creates the value from a store's columns.
    #[must_use]
    pub fn of_columns(dag: Option<String>, job: JobTemplate) -> Self {
        match dag {
            Some(dag) => Self::Batch(BatchTemplate { dag, input: job.payload }),
            None => Self::Job(job),
        }
    }
}

impl BatchTemplate {
    /// Returns the input of the batch for this tick.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] when an expression in it is invalid, reads more than `tick`, or cannot be evaluated for this tick.
    pub fn input_at(&self, tick: &NominalTime) -> Result<Box<RawValue>, InvalidBatch> {
        if !self.input.get().contains("${") {
            return Ok(self.input.clone());
        }
        let refuse = |why: String| InvalidBatch::Input { why };
        let input = Exact::read(self.input.get()).map_err(|e| refuse(e.to_string()))?;
        let template = Template::compile(input.marked()).map_err(|e| refuse(e.to_string()))?;
        if !template.reads().only_tick() {
            return Err(refuse("expressions in the input of a schedule can read only `tick`".to_owned()));
        }
        let (nothing, tick) = (Exact::default(), Exact::from(tick.value()));
        let values = Values { input: &nothing, tick: &tick, tasks: &[], item: None, event: None };
        let input = template
            .render(&Scope::new(&values, LITTLE_STEPS_MAX), PAYLOAD_BYTES_MAX)
            .map_err(|e| refuse(e.to_string()))?;
        to_raw_value(&input).map_err(|e| refuse(e.to_string()))
    }
}

impl From<NewJob> for Makes {
    /// Copies everything except key, start and id, which each tick sets.
    fn from(job: NewJob) -> Self {
        let NewJob { kind, queue, payload, priority, max_attempts, group, timeout, .. } = job;
        Self::Job(JobTemplate { kind, queue, payload, priority, max_attempts, group, timeout })
    }
}

impl From<NewBatch> for Makes {
    /// Copies DAG and input; each tick sets key, version and id.
    fn from(batch: NewBatch) -> Self {
        let NewBatch { dag, input, .. } = batch;
        Self::Batch(BatchTemplate { dag, input })
    }
}

/// The job or batch to create for one tick.
#[derive(Clone, Debug)]
pub enum Order {
    /// A job to enqueue.
    Job(NewJob),
    /// A batch to start.
    Batch(NewBatch),
}

impl Order {
    /// Returns its unique key.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Job(job) => job.key.as_deref(),
            Self::Batch(batch) => batch.key.as_deref(),
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidSchedule> {
        match self {
            Self::Job(job) => Ok(job.check(PAYLOAD_BYTES_MAX)?),
            Self::Batch(batch) => batch.check(PAYLOAD_BYTES_MAX).map_err(InvalidSchedule::Batch),
        }
    }
}

/// The job or batch of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Made {
    /// A job.
    Job(Enqueued),
    /// A batch.
    Batch(Started),
}

impl Made {
    /// Returns whether it already existed with the same key.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        match self {
            Self::Job(made) => made.duplicate,
            Self::Batch(made) => made.duplicate,
        }
    }
}
