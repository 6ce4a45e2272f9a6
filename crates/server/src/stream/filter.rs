//! What a watcher wants to be told.

use milepost_core::feed::Change;
use milepost_core::ident::{BatchId, JobId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which changes a watcher wants: those that fit all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Of jobs of this queue.
    queue: Option<String>,
    /// Of jobs of this kind.
    kind: Option<String>,
    /// Of this job.
    job: Option<JobId>,
    /// Of this batch and its tasks.
    batch: Option<BatchId>,
    /// Of jobs, or of batches.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    of: Option<ChangeType>,
    /// To this state.
    state: Option<String>,
    /// The id of the last event that was received, where the header `Last-Event-ID` cannot be set.
    pub(super) last_event_id: Option<String>,
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeType {
    Job,
    Batch,
}

impl ChangeType {
    /// What a change is of.
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
    /// The same, wherever the watcher was: those who want the same are told the same.
    pub(super) fn anywhere(self) -> Self {
        Self { last_event_id: None, ..self }
    }

    /// Whether a change is wanted.
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
