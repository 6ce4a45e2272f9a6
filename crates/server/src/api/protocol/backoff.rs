//! How long a job of a kind waits after a failed run, as workers state it.

use std::collections::BTreeMap;
use std::time::Duration;

use milepost_core::retry::RetryPolicy;
use milepost_core::worker::Backoffs;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::{Code, Problem};

/// How long a job waits after a failed run: `base_ms`, doubled with each failure, up to `cap_ms`.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Backoff {
    /// The wait after the first failure, in milliseconds. The default is 1,000.
    base_ms: Option<u64>,
    /// The longest wait, in milliseconds. The default is 3,600,000. For a constant wait, make both equal.
    cap_ms: Option<u64>,
    /// The random share of the wait: 0 for none, 1 for any wait from zero to double. The default is 0.1.
    #[schema(minimum = 0, maximum = 1)]
    jitter: Option<f64>,
}

impl Backoff {
    /// Returns the policy; settings that are not given have the defaults.
    ///
    /// # Errors
    /// A problem at the field `at` if it contradicts itself.
    pub(super) fn policy(self, at: impl FnOnce() -> String) -> Result<RetryPolicy, Problem> {
        let default = RetryPolicy::default();
        let policy = RetryPolicy {
            base: self.base_ms.map_or(default.base, Duration::from_millis),
            cap: self.cap_ms.map_or(default.cap, Duration::from_millis),
            jitter: self.jitter.unwrap_or(default.jitter),
        };
        let checked = policy.check();
        checked.map(|()| policy).map_err(|what| Problem::new(Code::InvalidBackoff, what.to_string()).at(at()))
    }
}

/// Returns the policies of all kinds of a worker, for those who rescue its jobs.
///
/// # Errors
/// A problem if a policy contradicts itself, or is that of a kind that the worker does not serve.
pub(super) fn of_kinds(kinds: &[String], given: &BTreeMap<String, Backoff>) -> Result<Backoffs, Problem> {
    let at = |kind: &str| format!("backoffs.{kind}");
    if let Some(kind) = given.keys().find(|kind| !kinds.contains(kind)) {
        let words =
            format!("the worker does not serve the kind {kind:?}: add it to kinds, or remove its backoff");
        return Err(Problem::new(Code::InvalidBackoff, words).at(at(kind)));
    }
    let policy = |kind: &String| match given.get(kind) {
        Some(backoff) => backoff.policy(|| at(kind)),
        None => Ok(RetryPolicy::default()),
    };
    kinds.iter().map(|kind| Ok((kind.clone(), policy(kind)?))).collect()
}
