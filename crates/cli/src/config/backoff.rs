//! `backoff` of a kind or a subscription: the delay before failed jobs or events are retried.

use milepost::RetryPolicy;
use milepost_cli_support::parsers;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;

/// The wait doubles with every failure, up to a cap.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Backoff {
    /// The wait after the first failure. The default is `1s`.
    base: Option<Humane>,
    /// The longest wait. The default is `1h`, for a subscription `5m`.
    cap: Option<Humane>,
    /// The random share of the wait: 0 for none, 1 for any wait from zero to double. The default is 0.1.
    #[schemars(range(min = 0, max = 1))]
    jitter: Option<f64>,
}

impl Backoff {
    pub(crate) fn policy(&self) -> RetryPolicy {
        self.policy_over(RetryPolicy::default())
    }

    /// Returns the policy; settings that are not given are taken from `default`.
    pub(crate) fn policy_over(&self, default: RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            base: self.base.map_or(default.base, |time| time.0),
            cap: self.cap.map_or(default.cap, |time| time.0),
            jitter: self.jitter.unwrap_or(default.jitter),
        }
    }
}

/// Checks the waits; those that are not given are taken from `default`.
pub(super) fn check(backoff: Option<&Node>, default: RetryPolicy, faults: &mut Faults) {
    let Some(backoff) = backoff else { return };
    let time = |key: &str, default| match backoff.get(key) {
        Some(node) => parsers::duration(node.text()?).ok(),
        None => Some(default),
    };
    if let (Some(base), Some(cap)) = (time("base", default.base), time("cap", default.cap))
        && let Err(what) = (RetryPolicy { base, cap, ..default }).check()
    {
        let at = backoff.get("base").unwrap_or(backoff).span.start;
        faults.add(at, what.to_string(), "set base to at most cap; for a constant wait, make them equal");
    }
}
