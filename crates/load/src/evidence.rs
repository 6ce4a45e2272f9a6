//! What clients asked for and were answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::Answer;
use crate::plan::Plan;

/// The number of a job in a run. Its key is made of it.
pub type Number = u64;

/// The creates of one job.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The job.
    pub plan: Plan,
    /// The ids in the answers.
    pub ids: BTreeSet<String>,
    /// The number of answers that reported a new job.
    pub created: u64,
    /// The number of answers that reported an existing one.
    pub duplicates: u64,
    /// The number of clients that got no answer.
    pub unanswered: u64,
    /// The refusals.
    pub refused: Vec<String>,
}

impl Asked {
    /// Returns a job for which no client has an answer yet.
    #[must_use]
    pub const fn new(plan: Plan) -> Self {
        Self { plan, ids: BTreeSet::new(), created: 0, duplicates: 0, unanswered: 0, refused: Vec::new() }
    }

    /// Adds the answer that a client got.
    pub fn add(&mut self, answer: &Answer) {
        match answer {
            Answer::Created { id, duplicate } => {
                self.ids.insert(id.clone());
                self.created += u64::from(!duplicate);
                self.duplicates += u64::from(*duplicate);
            }
            Answer::Refused(words) => self.refused.push(words.clone()),
            Answer::Failed => self.unanswered += 1,
        }
    }
}

/// A create that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When it was due, from the beginning of the run.
    pub due: Duration,
    /// The time from then until the answer, with all repetitions.
    pub took: Duration,
}

/// Everything that clients know.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The jobs.
    pub asked: BTreeMap<Number, Asked>,
    /// The creates that were answered.
    pub calls: Vec<Call>,
    /// The times of requests that failed and were repeated.
    pub errors: Vec<Duration>,
}

impl Evidence {
    /// Adds what another client knows. Clients do not share jobs.
    pub fn add(&mut self, other: Self) {
        self.asked.extend(other.asked);
        self.calls.extend(other.calls);
        self.errors.extend(other.errors);
    }
}
