//! The built-in bulk job that applies an operation to many jobs. It processes their ids, can be inspected, stopped and resumed like any
//! other bulk job, and records a failure for each job that rejects the operation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::{Definition, Effects, Labels};
use super::run::BadTarget;
use super::staged::{ColumnType, Columns, InvalidColumns};
use crate::duration::whole_ms;
use crate::error::StoreError;
use crate::format::several;
use crate::ident::JobId;
use crate::job::Priority;
use crate::port::Operation;
use crate::transition::Verb;

/// The name of the bulk job.
pub const NAME: &str = "milepost.operate";
/// The queue of its runs, served by workers that perform operators' operations.
pub const QUEUE: &str = "milepost";

/// The number of jobs of a run whose current states are counted.
pub const COUNTED_MAX: u32 = 10_000;

/// The parameters of a run: the operation that is applied to each job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperateJobs {
    /// The operation.
    pub verb: Verb,
    /// The reason, recorded in the history of each job.
    pub note: Option<String>,
    /// How long a running job has to stop on its own, in ms.
    #[serde(default)]
    pub grace_ms: u64,
    /// The delay before the job may be claimed, in ms.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A target: a job that the operation is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperateTarget {
    /// Its id.
    pub job: JobId,
}

impl OperateJobs {
    /// Creates the parameters for an operation on many jobs.
    #[must_use]
    pub fn new(operation: &Operation) -> Self {
        let ms = |duration| whole_ms(duration).unsigned_abs();
        Self {
            verb: operation.verb,
            note: operation.reason().map(str::to_owned),
            grace_ms: ms(operation.grace),
            delay_ms: ms(operation.delay),
        }
    }

    /// Returns the operation for one job.
    #[must_use]
    pub fn operation(&self) -> Operation {
        Operation {
            verb: self.verb,
            grace: Duration::from_millis(self.grace_ms),
            delay: Duration::from_millis(self.delay_ms),
            note: self.note.clone(),
        }
    }
}

/// Returns the title of a run that does this to so many jobs, such as `Retry of 40 jobs`.
#[must_use]
pub fn title(verb: Verb, jobs: usize) -> String {
    let name = if verb == Verb::RetryNow { "retry" } else { verb.as_str() };
    let (first, rest) = name.split_at(1);
    format!("{}{rest} of {}", first.to_uppercase(), several(jobs as u64, "job", "jobs"))
}

/// Returns its definition. A job that rejects the operation does not stop the run.
///
/// # Errors
/// None in practice: its only column has a valid name.
pub fn definition() -> Result<Definition, InvalidColumns> {
    Ok(Definition {
        queue: QUEUE.to_owned(),
        priority: Priority::FIRST,
        failures_max: u64::from(u32::MAX),
        labels: Labels { r#type: Some("operation".to_owned()), category: Some("operator".to_owned()) },
        effects: Effects::ExactlyOnce,
        columns: Some(Columns::new([("job", ColumnType::Text)])?),
        fingerprint: "1".to_owned(),
        ..Definition::new(NAME)
    })
}

/// Converts the rejection of an operation into a failure of its target. Other errors are problems of the store.
///
/// # Errors
/// The error itself when the target did not cause it.
pub fn blame(error: StoreError) -> Result<BadTarget, StoreError> {
    let code = match &error {
        StoreError::NoSuchJob(_) => "no_such_job",
        StoreError::Illegal { .. } => "illegal_transition",
        StoreError::Batch(_) => "invalid_batch",
        _ => return Err(error),
    };
    Ok(BadTarget { code: code.to_owned(), message: error.to_string() })
}
