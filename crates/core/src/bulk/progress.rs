//! How far a run is whose targets are on another database than the store: what passes between the two.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::run::{Parts, Position, Survey};
use crate::transition::Verb;

/// A run that was taken over.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Where it is.
    pub position: Position,
    /// Who was writing among its targets when it began, in the words of their database.
    pub since: String,
    /// Of a run over the failures of another: which those are.
    pub failures: Option<Survey>,
}

/// Where a run stands before a chunk, and what it was told.
#[derive(Clone, Debug)]
pub struct Stand {
    /// Where its next targets are.
    pub stretch: Stretch,
    /// Whether, and how, it is to stop.
    pub stop: Option<Verb>,
}

/// A stretch of the targets: those behind the cursor, up to the last one.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// Up to which target all is done.
    pub cursor: Option<Key>,
    /// The last target; `None`: there is none at all.
    pub upper: Option<Key>,
    /// Of a run over the failures of another: the next of them. Its cursor goes by their places.
    pub failed: Option<Vec<FailedTarget>>,
}

impl Stretch {
    /// Where a target stands: of one that failed before it is its place among the failures, by which the run goes.
    #[must_use]
    pub fn place(&self, key: &Key) -> Key {
        let failed = self.failed.iter().flatten().find(|failed| failed.key == *key);
        failed.map_or_else(|| key.clone(), |failed| Key(vec![failed.pos.to_string().into()]))
    }
}

/// A target that failed before and is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTarget {
    /// Its place in the table of failures.
    pub pos: i64,
    /// Which target.
    pub key: Key,
}

/// A chunk that was done on another database, or elsewhere.
#[derive(Clone, Debug)]
pub struct Step {
    /// Where the cursor was when it was read.
    pub from: Option<Key>,
    /// What its targets came to.
    pub parts: Parts,
    /// How many rows it was to have.
    pub rows: u32,
    /// How long it took.
    pub took: Duration,
}
