//! Progress of runs whose targets are in another database than the store: the data exchanged between the two.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::run::{Parts, Position, Survey};
use crate::transition::Verb;

/// A run that a worker has taken over.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its position.
    pub position: Position,
    /// The transactions that were writing to its targets when it began, in the format of the targets' database.
    pub since: String,
    /// For a run over the failures of another run: these failures.
    pub failures: Option<Survey>,
}

/// The state of a run before a chunk, and stop requests.
#[derive(Clone, Debug)]
pub struct BeforeChunk {
    /// The range of its next targets.
    pub range: TargetRange,
    /// The requested kind of stop, if one was requested.
    pub stop: Option<Verb>,
}

/// A range of targets: those after the cursor, up to the last one.
#[derive(Clone, Debug, Default)]
pub struct TargetRange {
    /// The key up to which all targets are processed.
    pub cursor: Option<Key>,
    /// The last target; `None` when there are no targets.
    pub upper: Option<Key>,
    /// For a run over the failures of another run: the next failures. The cursor of such a run is a position in the table of failures.
    pub failed: Option<Vec<FailedTarget>>,
}

impl TargetRange {
    /// Returns the cursor position of a target. For a retried failure, it is the position in the table of failures.
    #[must_use]
    pub fn place(&self, key: &Key) -> Key {
        let failed = self.failed.iter().flatten().find(|failed| failed.key == *key);
        failed.map_or_else(|| key.clone(), |failed| Key(vec![failed.pos.to_string().into()]))
    }
}

/// A target that failed before and is retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTarget {
    /// Its position in the table of failures.
    pub pos: i64,
    /// The target's key.
    pub key: Key,
}

/// A chunk that was applied in another database, or outside a database.
#[derive(Clone, Debug)]
pub struct Step {
    /// The cursor when the chunk was read.
    pub from: Option<Key>,
    /// The results of its targets.
    pub parts: Parts,
    /// The planned number of rows.
    pub rows: u32,
    /// Its duration.
    pub took: Duration,
}
