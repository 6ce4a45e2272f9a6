//! Actions on runs of bulk jobs.

use humantime::format_duration;

use super::job::JobAction;
use super::{GRACE_DEFAULT, actions};
use crate::bulk::listing::BulkView;
use crate::port::Operated;
use crate::state::JobState;

actions! {
    /// An operation on a run of a bulk job.
    #[cfg_attr(feature = "openapi", schema(as = RunOperation))]
    RunAction {
        Abort = "abort" {
            title: "Abort",
            summary: "Stop runs so that they can be resumed; no further chunk starts",
            effect: "It stops before its next chunk and keeps its position, so that it can be resumed. The next run of its group starts: to keep \
                     the database free, pause its queue first.",
            is_destructive: true,
        }
        Resume = "resume" {
            title: "Resume",
            summary: "Resume aborted or failed runs after their cursors",
            effect: "It continues after its last completed target when its group is free.",
        }
        Cancel = "cancel" {
            title: "Cancel",
            summary: "Cancel runs permanently",
            effect: "It ends permanently. Completed targets stay; the others are never processed.",
            is_destructive: true,
        }
    }
}

actions! {
    /// An action on a run of a bulk job that its job alone does not have.
    RunChange {
        Set = "set" {
            title: "Change speed",
            summary: "Change the rate, duty and chunk sizes of a run",
            effect: "The settings apply from its next chunk on.",
        }
        RetryFailures = "retry_failures" {
            title: "Retry failures",
            summary: "Start a run over the failed targets of another run",
            effect: "A new run in the same group, with the same parameters, processes the failed targets that no other run retries already.",
        }
    }
}

actions! {
    /// An action that makes a run.
    NewRunAction {
        Start = "start" {
            title: "Start",
            summary: "Start a run of a bulk job",
            effect: "It runs when no other run of its group does.",
        }
        DryRun = "dry_run" {
            title: "Dry run",
            summary: "Apply a few real chunks of a bulk job and roll them back",
            effect: "A worker applies a few real chunks and rolls them back; the page of its job then shows what they cost. While they run, they lock \
                     their rows, and on SQLite they block other writers.",
        }
    }
}

impl RunAction {
    /// Returns whether to offer the action for this run: its state allows it, and the run is not stopping already.
    #[must_use]
    pub fn is_offered_for(self, run: &BulkView) -> bool {
        let is_stopping = self == Self::Abort && run.stopping.is_some();
        self.of_job().verb(run.state).is_some() && !is_stopping
    }

    /// Returns the action on the run's job.
    #[must_use]
    pub const fn of_job(self) -> JobAction {
        match self {
            Self::Abort => JobAction::Abort,
            Self::Resume => JobAction::Retry,
            Self::Cancel => JobAction::Cancel,
        }
    }

    /// Describes the result for a user.
    #[must_use]
    pub fn result(self, operated: Operated) -> String {
        match (self, operated) {
            (Self::Abort | Self::Cancel, Operated::StopRequested) => format!(
                "no further chunk starts; {} after the current one, within {} at the latest",
                if self == Self::Abort { JobState::Aborted } else { JobState::Canceled },
                format_duration(GRACE_DEFAULT)
            ),
            (Self::Resume, _) => "resumed; it continues after its last completed target".to_owned(),
            (Self::Abort | Self::Cancel, Operated::Done(state)) => state.to_string(),
        }
    }
}
