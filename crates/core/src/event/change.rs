//! State changes as events: a subscription can receive these instead of emitted events.

use serde::{Deserialize, Serialize};

use super::InvalidEvent;
use crate::job::{NAME_BYTES_MAX, check_name};

/// The prefix of aggregate types that are reserved for state changes. Callers cannot emit events of such aggregates.
pub const RESERVED: &str = "milepost.";
const OF_JOBS: &str = "milepost.job.";
const OF_BATCHES: &str = "milepost.batch.";

/// The jobs and batches whose state changes a subscription receives. If empty, it receives emitted events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Jobs of these kinds; the name of a bulk job is the kind of its jobs.
    pub kinds: Vec<String>,
    /// Batches of these DAGs.
    pub dags: Vec<String>,
}

impl Changes {
    /// Returns whether no state changes are selected.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.dags.is_empty()
    }

    /// Returns the aggregate types of these jobs and batches.
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
    /// [`InvalidEvent::Name`] for the first name that cannot be part of an aggregate type.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        let check = |field, prefix: &str, name: &String| {
            check_name(field, name, NAME_BYTES_MAX - prefix.len()).map_err(InvalidEvent::Name)
        };
        self.kinds.iter().try_for_each(|kind| check("kind of the state changes", OF_JOBS, kind))?;
        self.dags.iter().try_for_each(|dag| check("DAG of the state changes", OF_BATCHES, dag))
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
        assert!(of(&"k".repeat(188), "d").check().unwrap_err().to_string().contains("at most 187"));
        assert!(of("k", &"d".repeat(186)).check().unwrap_err().to_string().contains("at most 185"));
        assert!(of("", "d").check().unwrap_err().to_string().contains("empty"));
    }
}
