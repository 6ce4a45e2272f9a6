//! Filters of streams.

use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::feed::Change;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::state::JobState;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Code, Problem};

/// A filter of changes. A change must match all given fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Changes of jobs in this queue.
    queue: Option<String>,
    /// Changes of jobs of this kind.
    kind: Option<String>,
    /// Changes of this job.
    job: Option<JobId>,
    /// Changes of this batch and its tasks.
    batch: Option<BatchId>,
    /// Changes of jobs only, or of batches only.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    of: Option<ChangeType>,
    /// Changes to this state.
    state: Option<String>,
    /// The id of the last received event, for clients that cannot set the header `Last-Event-ID`.
    pub(super) last_event_id: Option<String>,
}

/// The type of the changed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeType {
    Job,
    Batch,
}

impl ChangeType {
    /// Returns the type of a change.
    pub(super) const fn of(change: &Change) -> Self {
        match change {
            Change::Job(_) => Self::Job,
            Change::Batch(_) => Self::Batch,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Batch => "batch",
        }
    }
}

impl Filter {
    /// Rejects a state that neither jobs, batches nor tasks have: the stream would stay empty.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_state = |word: &str| {
            word.parse::<JobState>().is_ok()
                || word.parse::<BatchState>().is_ok()
                || word.parse::<TaskState>().is_ok()
        };
        match self.state.as_deref().filter(|word| !is_state(word)) {
            Some(word) => {
                let word: String = word.chars().take(60).collect();
                let what = format!("there is no state {word:?} of jobs, batches or tasks");
                Err(Problem::new(Code::InvalidParameter, what).at("query state"))
            }
            None => Ok(()),
        }
    }

    /// Removes the position, so that streams with the same filter share the written text.
    pub(super) fn anywhere(self) -> Self {
        Self { last_event_id: None, ..self }
    }

    /// Returns whether a change matches.
    pub(super) fn wants(&self, change: &Change) -> bool {
        let is = |wanted: &Option<String>, it: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| it == Some(wanted))
        };
        if self.of.is_some_and(|of| of != ChangeType::of(change)) {
            return false;
        }
        match change {
            Change::Job(change) => {
                is(&self.queue, change.queue.as_deref())
                    && is(&self.kind, change.kind.as_deref())
                    && is(&self.state, Some(change.to.as_str()))
                    && self.job.is_none_or(|job| job == change.job)
                    && (self.batch.is_none() || self.batch == change.batch)
            }
            Change::Batch(change) => {
                self.queue.is_none()
                    && self.kind.is_none()
                    && self.job.is_none()
                    && is(&self.state, Some(&change.to))
                    && self.batch.is_none_or(|batch| batch == change.batch)
            }
        }
    }
}
