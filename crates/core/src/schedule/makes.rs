//! What a schedule makes at each tick: a job, or a batch.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{InvalidSchedule, as_ms_opt};
use crate::batch::error::InvalidBatch;
use crate::batch::nominal::NominalTime;
use crate::batch::start::{NewBatch, Started};
use crate::dag::expression::{LITTLE_STEPS_MAX, Scope, Values};
use crate::dag::template::Template;
use crate::ident::{BatchId, JobId};
use crate::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};
use crate::trace::Traceparent;

/// What each tick of a schedule makes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Makes {
    /// A job.
    Job(JobTemplate),
    /// A batch.
    Batch(BatchTemplate),
}

/// What every job of a schedule has in common.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobTemplate {
    /// Which handler runs it.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Its input, as JSON text.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// Which jobs of the queue go first.
    #[cfg_attr(feature = "openapi", schema(value_type = u8))]
    pub priority: Priority,
    /// How many attempts it gets; a crash of its worker spends one.
    pub max_attempts: u32,
    /// Jobs of a group run one at a time.
    pub group: Option<String>,
    /// How long one attempt may take.
    #[serde(rename = "timeout_ms", serialize_with = "as_ms_opt")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub timeout: Option<Duration>,
}

/// What every batch of a schedule has in common. Each is of the version that is the latest at its tick.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchTemplate {
    /// The name of its DAG.
    pub dag: String,
    /// Its input, as JSON text. Texts in it may hold `${ … }` with expressions over `tick`.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub input: Box<RawValue>,
}

impl Makes {
    /// What is made for this tick, under this key.
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

    /// How many ticks one transaction sees to; what is left over stays due. A batch may have very many tasks.
    pub(super) const fn at_once(&self) -> usize {
        match self {
            Self::Job(_) => 500,
            Self::Batch(_) => 1,
        }
    }

    /// The columns of a store: the DAG, and those of jobs. Of batches the payload is the input, and the others of jobs
    /// say nothing.
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

    /// What stands in the columns of a store.
    #[must_use]
    pub fn of_columns(dag: Option<String>, job: JobTemplate) -> Self {
        match dag {
            Some(dag) => Self::Batch(BatchTemplate { dag, input: job.payload }),
            None => Self::Job(job),
        }
    }
}

impl BatchTemplate {
    /// The input of the batch of this tick.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] when an expression in it cannot be used, reads more than `tick`, or has no value for this tick.
    pub fn input_at(&self, tick: &NominalTime) -> Result<Box<RawValue>, InvalidBatch> {
        if !self.input.get().contains("${") {
            return Ok(self.input.clone());
        }
        let refuse = |why: String| InvalidBatch::Input { why };
        let input = serde_json::from_str(self.input.get()).map_err(|e| refuse(e.to_string()))?;
        let template = Template::compile(&input).map_err(|e| refuse(e.to_string()))?;
        if !template.reads().only_tick() {
            return Err(refuse(
                "the expressions in the input of a schedule read `tick` and nothing else".to_owned(),
            ));
        }
        let values = Values { input: &Value::Null, tick: &tick.value(), tasks: &[], item: None };
        let input = template
            .render(&Scope::new(&values, LITTLE_STEPS_MAX), PAYLOAD_BYTES_MAX)
            .map_err(|e| refuse(e.to_string()))?;
        to_raw_value(&input).map_err(|e| refuse(e.to_string()))
    }
}

impl From<NewJob> for Makes {
    /// Key, start and id are left out: each tick brings its own.
    fn from(job: NewJob) -> Self {
        let NewJob { kind, queue, payload, priority, max_attempts, group, timeout, .. } = job;
        Self::Job(JobTemplate { kind, queue, payload, priority, max_attempts, group, timeout })
    }
}

impl From<NewBatch> for Makes {
    /// Key, version and id are left out: each tick brings its own.
    fn from(batch: NewBatch) -> Self {
        let NewBatch { dag, input, .. } = batch;
        Self::Batch(BatchTemplate { dag, input })
    }
}

/// What is to be made for one tick.
#[derive(Clone, Debug)]
pub enum Order {
    /// A job to enqueue.
    Job(NewJob),
    /// A batch to start.
    Batch(NewBatch),
}

impl Order {
    /// The key that only one has.
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

/// What was made for a tick.
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
    /// Whether it was there before, under the same key.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        match self {
            Self::Job(made) => made.duplicate,
            Self::Batch(made) => made.duplicate,
        }
    }
}
