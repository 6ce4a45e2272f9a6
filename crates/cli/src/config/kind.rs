//! `[kinds.NAME]`: the executor of a kind, and the handling of its failures.

use std::time::Duration;

use milepost::{NewJob, RetryPolicy};
use milepost_core::bulk::operation;
use schemars::JsonSchema;
use serde::Deserialize;

use super::backoff::{self, Backoff};
use super::document::{Entry, Node};
use super::exec::Exec;
use super::fault::Faults;
use super::http::{self, Http};
use super::humane::Humane;

/// A kind of job: exactly one of `http` and `exec`, and settings for both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    /// Runs the kind's jobs as HTTP calls.
    #[serde(default)]
    http: Option<Http>,
    /// Runs the kind's jobs as a program.
    #[serde(default)]
    exec: Option<Exec>,
    /// The time limit of one attempt; a job may have a separate limit. There is no limit by default,
    /// except for that of `http`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    pub(crate) timeout: Option<Humane>,
    /// How long a failed job waits before it is retried.
    #[serde(default)]
    pub(crate) backoff: Backoff,
}

/// The executor of a kind.
#[derive(Debug)]
pub(crate) enum Executor {
    Http(Http),
    Exec(Exec),
}

impl Kind {
    /// Returns the executor; a checked file has exactly one.
    pub(crate) fn executor(self) -> Option<Executor> {
        self.http.map(Executor::Http).or_else(|| self.exec.map(Executor::Exec))
    }

    /// Returns the time limit of one attempt.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(|time| time.0)
    }
}

pub(super) fn check(kinds: Option<&Node>, faults: &mut Faults) {
    for kind in kinds.map(Node::entries).unwrap_or_default() {
        check_kind(kind, faults);
    }
}

fn check_kind(Entry { key: name, at, node: kind }: &Entry, faults: &mut Faults) {
    if let Err(why) = check_name("kind", name) {
        faults.add(*at, why, "give it a name of 1 to 200 bytes without control characters");
    }
    match (kind.get("http"), kind.get("exec")) {
        (None, None) if kind.is_table() => faults.add(
            *at,
            format!(
                "the kind {name} has neither http nor exec: `milepost work` could not run it; a kind that another program runs needs no section"
            ),
            "add http = { url = \"…\" } to call a server, or exec = { program = \"…\" } to run a program",
        ),
        (Some(http), Some(exec)) => faults.add(
            http.span.start.max(exec.span.start),
            format!("the kind {name} has both http and exec"),
            "keep one of the two",
        ),
        _ => {}
    }
    http::check(kind.get("http"), faults);
    backoff::check(kind.get("backoff"), RetryPolicy::default(), faults);
}

/// Checks whether jobs can have this name; returns the reason if not.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), String> {
    if name == operation::NAME {
        return Err(format!("the {field} {name:?} is that of operations on many jobs"));
    }
    // Kinds and queues have the same rule.
    NewJob::new(name, &())
        .and_then(|job| job.check(usize::MAX))
        .map_err(|error| error.to_string().replace("kind", field))
}
