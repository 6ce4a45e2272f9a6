//! State changes as events: what a subscription can have instead of what is emitted.

use serde::{Deserialize, Serialize};

use super::InvalidEvent;
use crate::job::{NAME_BYTES_MAX, check_name};

/// How the types of aggregates begin whose events are state changes. Nobody else may emit such.
pub const RESERVED: &str = "milepost.";
const OF_JOBS: &str = "milepost.job.";
const OF_BATCHES: &str = "milepost.batch.";

/// The jobs and batches whose state changes a subscription has. Empty: it has what is emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Of jobs of these kinds; a bulk job's name is the kind of its jobs.
    pub kinds: Vec<String>,
    /// Of batches of these DAGs.
    pub dags: Vec<String>,
}

impl Changes {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.dags.is_empty()
    }

    /// The types of the aggregates that these jobs and batches are.
    #[must_use]
    pub fn aggregate_types(&self) -> Vec<String> {
        let of = |prefix, names: &[String]| {
            names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<String>>()
        };
        [of(OF_JOBS, &self.kinds), of(OF_BATCHES, &self.dags)].concat()
    }

    /// Checks the names.
    ///
    /// # Errors
    /// [`InvalidEvent::Name`] says what is wrong with the first that no aggregate can be named after.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        let check = |field, prefix: &str, name: &String| {
            check_name(field, name, NAME_BYTES_MAX - prefix.len()).map_err(InvalidEvent::Name)
        };
        self.kinds.iter().try_for_each(|kind| check("kind whose changes are wanted", OF_JOBS, kind))?;
        self.dags.iter().try_for_each(|dag| check("DAG whose changes are wanted", OF_BATCHES, dag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, dag: &str) -> Changes {
        Changes { kinds: vec![kind.to_owned()], dags: vec![dag.to_owned()] }
    }

    #[test]
    fn jobs_and_batches_are_aggregates_named_after_their_kinds_and_dags() {
        assert_eq!(of("mail", "close").aggregate_types(), ["milepost.job.mail", "milepost.batch.close"]);
        assert!(of("mail", "close").aggregate_types().iter().all(|name| name.starts_with(RESERVED)));
    }

    #[test]
    fn a_name_has_room_behind_the_prefix() {
        of(&"k".repeat(187), &"d".repeat(185)).check().unwrap();
        assert!(of(&"k".repeat(188), "d").check().unwrap_err().to_string().contains("too long"));
        assert!(of("k", &"d".repeat(186)).check().unwrap_err().to_string().contains("too long"));
        assert!(of("", "d").check().unwrap_err().to_string().contains("empty"));
    }
}
