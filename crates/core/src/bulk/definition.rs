//! Definitions of bulk jobs: what a bulk job does, independent of its runs.

use serde::{Deserialize, Serialize};

use super::chunk::{Load, Sizing};
use super::error::InvalidBulk;
use super::parameters::Parameters;
use super::staged::Columns;
use super::statements::Statements;
use crate::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority};
use crate::named::named_enum;

/// The default queue of bulk jobs.
pub const QUEUE_DEFAULT: &str = "bulk";

named_enum! {
    /// What a crash during a chunk means for its targets.
    Effects {
        /// Effects and cursor are committed together: each target is applied exactly once.
        ExactlyOnce = "exactly_once",
        /// The effects are not committed with the cursor: the current chunk is applied again.
        AtLeastOncePerChunk = "at_least_once_per_chunk",
    }
}

impl Effects {
    /// Describes what a crash in the middle of a chunk means.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "every target exactly once",
            Self::AtLeastOncePerChunk => {
                "at least once per chunk: the current chunk is repeated after a crash"
            }
        }
    }
}

/// Labels that lists can be filtered by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The type of output, such as notification rows or pushes.
    pub r#type: Option<String>,
    /// The purpose, such as popular content, by place, or an operator's action.
    pub category: Option<String>,
}

/// The definition of a bulk job. Its name is the kind of its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name, and the kind of its jobs.
    pub name: String,
    /// Labels that lists can be filtered by.
    pub labels: Labels,
    /// Its group. One bulk job of a group runs at a time.
    pub group: String,
    /// The queue in which its jobs wait.
    pub queue: String,
    /// Its priority within the group.
    pub priority: Priority,
    /// The maximum number of attempts of a run; a crash uses one.
    pub max_attempts: u32,
    /// The target duration and the size limits of its chunks.
    pub sizing: Sizing,
    /// The maximum load that it puts on the database.
    pub load: Load,
    /// The maximum number of targets that may fail before the run is aborted.
    pub failures_max: u64,
    /// The bulk job that is started when this one ends.
    pub then: Option<String>,
    /// What a crash in the middle of a chunk means for its targets.
    pub effects: Effects,
    /// The columns of the file that each run is started with; `None` when its targets are in tables of the database.
    pub columns: Option<Columns>,
    /// The database that contains its targets, if it is not the store's: its name and address, without secrets.
    pub place: Option<String>,
    /// A hash that changes when the source or the apply changes. A run continues only with the ones it began with.
    pub fingerprint: String,
    /// Its statements and their parameters, for those who examine or start it; `None` if they are not known.
    pub statements: Option<Statements>,
}

impl Definition {
    /// Creates a definition with default settings.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            group: name.clone(),
            name,
            labels: Labels::default(),
            queue: QUEUE_DEFAULT.to_owned(),
            priority: Priority::default(),
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            sizing: Sizing::default(),
            load: Load::default(),
            failures_max: 0,
            then: None,
            effects: Effects::ExactlyOnce,
            columns: None,
            place: None,
            fingerprint: String::new(),
            statements: None,
        }
    }

    /// Returns whether a job of its kind with these settings runs as it does: otherwise no worker would ever take it.
    #[must_use]
    pub fn directs(&self, queue: &str, group: Option<&str>, max_attempts: u32) -> bool {
        queue == self.queue && group == Some(self.group.as_str()) && max_attempts == self.max_attempts
    }

    /// Refuses parameters if one that its statements use is missing. Nothing is refused if they are not known.
    ///
    /// # Errors
    /// [`InvalidBulk::NoParameter`].
    pub fn check_parameters(&self, given: &Parameters) -> Result<(), InvalidBulk> {
        self.statements.as_ref().map_or(Ok(()), |statements| statements.check_parameters(given))
    }

    /// Turns this job into a run of the definition.
    #[must_use]
    pub fn direct(&self, mut job: NewJob) -> NewJob {
        job.kind.clone_from(&self.name);
        job.group = Some(self.group.clone());
        job.queue.clone_from(&self.queue);
        job.priority = self.priority;
        job.max_attempts = self.max_attempts;
        job
    }
}
