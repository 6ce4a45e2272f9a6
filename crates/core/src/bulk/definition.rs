//! What a bulk job does, whoever starts it.

use serde::{Deserialize, Serialize};

use super::chunk::{Load, Sizing};
use super::staged::Columns;
use crate::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority};
use crate::state::named_enum;
use std::fmt;
use std::str::FromStr;

/// The queue of bulk jobs that say nothing else.
pub const QUEUE_DEFAULT: &str = "bulk";

named_enum! {
    /// What a crash in the middle of a chunk means for its targets.
    Effects {
        /// The effects and the cursor are one commit: every target once.
        ExactlyOnce = "exactly_once",
        /// The effects are elsewhere: the chunk in hand is done again.
        AtLeastOncePerChunk = "at_least_once_per_chunk",
    }
}

/// What lists filter by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// What comes out of it: notification rows, pushes, …
    pub r#type: Option<String>,
    /// What it is for: popular content, by place, an operator's, …
    pub category: Option<String>,
}

/// A bulk job before anybody starts it. Its name is the kind of its jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name, and the kind of its jobs.
    pub name: String,
    /// What lists filter by.
    pub labels: Labels,
    /// Of all bulk jobs of a group one runs at a time.
    pub group: String,
    /// Where its jobs wait.
    pub queue: String,
    /// Which of a group goes first.
    pub priority: Priority,
    /// How many attempts a run gets; a crash spends one.
    pub max_attempts: u32,
    /// What its chunks are like.
    pub sizing: Sizing,
    /// How much of the database it may take.
    pub load: Load,
    /// How many targets may fail before it is aborted.
    pub failures_max: u64,
    /// The bulk job that is started by its end.
    pub then: Option<String>,
    /// What a crash means for its targets.
    pub effects: Effects,
    /// The columns of the file that each run is started with; `None`: its targets are in tables of the database.
    pub columns: Option<Columns>,
    /// Where its targets are, when that is another database than the store's: its name and address, without secrets.
    pub place: Option<String>,
    /// Changes when its source or its apply does: a run goes on only with those it began with.
    pub fingerprint: String,
}

impl Definition {
    /// A definition with the settings that most have.
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
        }
    }

    /// This job as a run of the definition.
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
