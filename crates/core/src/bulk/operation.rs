//! Doing something to many jobs: a bulk job over their ids, like any other seen, stopped and resumed, with a failure for each job that it
//! could not be done to.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::{Definition, Effects, Labels};
use super::run::BadTarget;
use super::staged::{ColumnType, Columns, InvalidColumns};
use crate::duration::whole_ms;
use crate::error::StoreError;
use crate::ident::JobId;
use crate::job::Priority;
use crate::port::Operation;
use crate::transition::Verb;

/// The name of the bulk job.
pub const NAME: &str = "milepost.operate";
/// The queue of its runs, which workers serve that operate.
pub const QUEUE: &str = "milepost";

/// What a run does to each of its jobs: its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperateJobs {
    /// What.
    pub verb: Verb,
    /// Why; stands in the history of each.
    pub note: Option<String>,
    /// How long a running job gets to stop by itself.
    #[serde(default)]
    pub grace_ms: u64,
    /// Not to be claimed before this has passed.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A job that it is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperateTarget {
    /// Its id.
    pub job: JobId,
}

impl OperateJobs {
    /// This of each of many jobs.
    #[must_use]
    pub fn new(operation: &Operation) -> Self {
        let ms = |duration| whole_ms(duration).unsigned_abs();
        Self {
            verb: operation.verb,
            note: operation.note.clone(),
            grace_ms: ms(operation.grace),
            delay_ms: ms(operation.delay),
        }
    }

    /// The same of one job.
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

/// What its runs are like. A job that it cannot be done to stops none of them.
///
/// # Errors
/// None that can happen: its one column has a name.
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

/// What a refused operation says of its target; other errors are the store's, and not the target's.
///
/// # Errors
/// The error itself when the target is not to blame.
pub fn blame(error: StoreError) -> Result<BadTarget, StoreError> {
    let code = match &error {
        StoreError::NoSuchJob(_) => "no_such_job",
        StoreError::Illegal { .. } => "illegal_transition",
        StoreError::Batch(_) => "invalid_batch",
        _ => return Err(error),
    };
    Ok(BadTarget { code: code.to_owned(), message: error.to_string() })
}
