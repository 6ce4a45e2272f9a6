//! What an examination of a store looks for, and what it says about what it finds.
//!
//! A [`Check`] is one promise as one question to the rows. The stores answer each with one statement, that is from
//! one snapshot, so that a job in flight is never a finding.

mod checks;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use checks::Check;

use crate::duration::whole_ms;
use crate::state::named_enum;
use crate::transition::graph;

/// How many examples of a finding are told.
pub const EXAMPLES_MAX: usize = 10;

/// How late something may be before it counts, unless somebody says otherwise.
pub const PATIENCE_DEFAULT: Duration = Duration::from_secs(60);

named_enum! {
    /// How bad a finding is.
    Severity {
        /// A promise is broken.
        Error = "error",
        /// A promise holds, but something is in its way, or has been left over.
        Warning = "warning",
    }
}

named_enum! {
    /// Which stores a check is about.
    Stores {
        /// Every store.
        All = "all",
        /// PostgreSQL alone.
        Postgres = "postgres",
        /// SQLite alone.
        Sqlite = "sqlite",
    }
}

named_enum! {
    /// What a check reads.
    Cost {
        /// What needs attention now: its time grows with the live jobs.
        Quick = "quick",
        /// All that is kept: its time grows with the jobs and their history.
        Full = "full",
    }
}

/// How to look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// This machine's time.
    pub now: Timestamp,
    /// How late something may be before it counts.
    pub patience: Duration,
    /// How long one check may take.
    pub time_limit: Duration,
}

impl Look {
    /// What the statements are told, as JSON: `now_ms`, `patience_ms` and the `graph` of allowed changes.
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

/// One breach among those that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Example {
    /// A job's id, or the name of what is not as it should be.
    pub what: String,
    /// How it is.
    pub detail: String,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Which check.
    pub check: Check,
    /// How bad it is.
    pub severity: Severity,
    /// How many breaches there are.
    pub count: u64,
    /// At most [`EXAMPLES_MAX`] of them.
    pub examples: Vec<Example>,
}

impl Finding {
    /// The finding of a check whose statement answered these rows of (how many in all, what, detail).
    #[must_use]
    pub fn of(check: Check, rows: Vec<(i64, Example)>) -> Option<Self> {
        let count = rows.first()?.0.unsigned_abs();
        let examples = rows.into_iter().map(|(_, example)| example).take(EXAMPLES_MAX).collect();
        Some(Self { check, severity: check.severity(), count, examples })
    }

    /// What is left of it after a second look: only what is there in both.
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
