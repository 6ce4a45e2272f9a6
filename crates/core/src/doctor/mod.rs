//! Consistency checks of a store (`milepost doctor`) and their findings.
//!
//! A [`Check`] verifies one guarantee with one query. Each store answers a check with one statement, and therefore from
//! one snapshot, so that jobs in transition are not reported.

mod checks;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

pub use checks::Check;

use crate::duration::whole_ms;
use crate::named::named_enum;
use crate::transition::graph;

/// The maximum number of examples in a finding.
pub const EXAMPLES_MAX: usize = 10;

/// The default delay after which something late counts as a violation.
pub const PATIENCE_DEFAULT: Duration = Duration::from_secs(60);

named_enum! {
    /// The severity of a finding.
    Severity {
        /// A guarantee is violated.
        Error = "error",
        /// The guarantees hold, but something endangers them, or rows were left behind.
        Warning = "warning",
    }
}

named_enum! {
    /// The stores that a check applies to.
    Stores {
        /// Every store.
        All = "all",
        /// PostgreSQL only.
        Postgres = "postgres",
        /// SQLite only.
        Sqlite = "sqlite",
    }
}

named_enum! {
    /// How much data a check reads.
    Cost {
        /// Only rows that need attention: its duration grows with the number of live jobs.
        Quick = "quick",
        /// All rows: its duration grows with the number of jobs and the length of their histories.
        Full = "full",
    }
}

/// Parameters of an examination.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The time of this machine's clock.
    pub now: Timestamp,
    /// The delay after which something late counts as a violation.
    pub patience: Duration,
    /// The time limit of one check.
    pub time_limit: Duration,
}

impl Look {
    /// Returns the parameters of the statements as JSON: `now_ms`, `patience_ms` and the `graph` of allowed transitions.
    #[must_use]
    pub fn document(&self) -> String {
        let graph: Vec<_> = graph()
            .into_iter()
            .map(|(from, verb, to)| json!({ "from_state": from, "verb": verb, "to_state": to }))
            .collect();
        let now_ms = self.now.as_millisecond();
        json!({ "now_ms": now_ms, "patience_ms": whole_ms(self.patience), "graph": graph }).to_string()
    }
}

/// One violation found by a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Example {
    /// The id of a job, or the name of another inconsistent object.
    pub what: String,
    /// Its actual state.
    pub detail: String,
}

/// The violations found by a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// Its severity.
    pub severity: Severity,
    /// The number of violations.
    pub count: u64,
    /// At most [`EXAMPLES_MAX`] of them.
    pub examples: Vec<Example>,
}

impl Finding {
    /// Creates a finding from the rows of a check's statement: (total count, what, detail).
    #[must_use]
    pub fn of(check: Check, rows: Vec<(i64, Example)>) -> Option<Self> {
        let count = rows.first()?.0.unsigned_abs();
        let examples = rows.into_iter().map(|(_, example)| example).take(EXAMPLES_MAX).collect();
        Some(Self { check, severity: check.severity(), count, examples })
    }

    /// Returns the violations that are in both this finding and a second one.
    #[must_use]
    pub fn confirmed_by(self, second: Option<Self>) -> Option<Self> {
        let second = second?;
        let examples: Vec<Example> = second
            .examples
            .into_iter()
            .filter(|example| self.examples.iter().any(|first| first.what == example.what))
            .collect();
        (!examples.is_empty()).then(|| Self { count: self.count.min(second.count), examples, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(names: &[&str]) -> Option<Finding> {
        let example = |name: &&str| Example { what: (*name).to_owned(), detail: String::new() };
        let count = i64::try_from(names.len()).unwrap();
        Finding::of(Check::GroupLeftWaiting, names.iter().map(|name| (count, example(name))).collect())
    }

    #[test]
    fn nothing_found_is_no_finding() {
        assert_eq!(finding(&[]), None);
    }

    #[test]
    fn a_second_look_confirms_only_what_is_still_there() {
        let first = finding(&["a", "b"]).unwrap();
        assert_eq!(first.clone().confirmed_by(None), None);
        assert_eq!(first.clone().confirmed_by(finding(&["c"])), None);
        let both = first.confirmed_by(finding(&["b", "c", "d"])).unwrap();
        assert_eq!((both.count, both.examples[0].what.as_str(), both.examples.len()), (2, "b", 1));
    }
}
