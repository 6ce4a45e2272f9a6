//! The check of a schedule's input against the schema of its DAG.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::batch::error::InvalidBatch;
use crate::batch::start::check_fit_of_text;

/// The input of a schedule's batches, as it would be now, and the schema that it has to fit.
#[derive(Clone, Debug)]
pub enum InputOfTicks {
    /// Nothing to check: the schedule creates jobs, or its DAG has no schema.
    Free,
    /// The DAG is not defined. It may be defined before the first tick.
    NoDag(InvalidBatch),
    /// The input has to fit a schema.
    Bound {
        /// The schema of the DAG's current version.
        schema: Value,
        /// The input, with its expressions evaluated for a tick now.
        input: Box<RawValue>,
    },
}

impl InputOfTicks {
    /// Checks the input. Returns what is missing if the DAG is not defined. This can take a second: do not call it on an async runtime thread.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] with the reason and the location.
    pub fn check(self) -> Result<Option<InvalidBatch>, InvalidBatch> {
        match self {
            Self::Free => Ok(None),
            Self::NoDag(missing) => Ok(Some(missing)),
            Self::Bound { schema, input } => check_fit_of_text(&schema, input.get()).map(|()| None),
        }
    }
}
