//! `[[limits]]`: start rates of kinds, and start rates and concurrency of groups.

use std::collections::HashSet;

use milepost_core::limit::{Limit, Rate, Target};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;

/// A limit of exactly one of `kind` and `group`, across all nodes. Limits that the file no longer contains are
/// removed when the worker starts. Limits set by `milepost limits set` are not changed
/// and take precedence over the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitEntry {
    /// The kind.
    #[serde(default)]
    kind: Option<String>,
    /// The group, or a class `prefix:*`, which applies to each group whose name starts with `prefix:`.
    #[serde(default)]
    group: Option<String>,
    /// The maximum number of jobs of the group that run at the same time.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    concurrency: Option<u32>,
    /// The maximum rate of starts: `10/s`, `100/m`, `2000/h`, `5/d`, `0.5/s` or `7/15m`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-rate"))]
    rate: Option<String>,
    /// The number of jobs that may start at once after a pause. The default is that of one second, at least 1.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    burst: Option<u32>,
}

impl LimitEntry {
    /// Returns the limit of a checked file.
    pub(crate) fn limit(&self) -> Limit {
        let target = match (&self.kind, &self.group) {
            (Some(kind), _) => Target::Kind(kind.clone()),
            (None, group) => Target::Group(group.clone().unwrap_or_default()),
        };
        let per_second = self.rate.as_deref().and_then(|text| Rate::parse_per_second(text).ok());
        let rate = per_second.map(|per_second| {
            let steady = Rate::steady(per_second);
            Rate { burst: self.burst.unwrap_or(steady.burst), ..steady }
        });
        Limit { target, slots: self.concurrency, rate }
    }
}

pub(super) fn check(limits: Option<&Node>, faults: &mut Faults) {
    let mut targets = HashSet::new();
    for node in limits.map(Node::nodes).unwrap_or_default() {
        check_limit(node, &mut targets, faults);
    }
}

fn check_limit(node: &Node, targets: &mut HashSet<Target>, faults: &mut Faults) {
    let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    let (kind, group) = (text("kind"), text("group"));
    if kind.is_some() == group.is_some() {
        let what = if kind.is_some() { "both kind and group" } else { "neither kind nor group" };
        let remedy = "write kind = \"mail\", or group = \"tenant:*\"";
        faults.add(node.span.start, format!("the limit has {what}"), remedy);
        return;
    }
    if let Some(burst) = node.get("burst").filter(|_| node.get("rate").is_none()) {
        faults.add(
            burst.span.start,
            "burst has an effect only together with rate",
            "add rate = \"10/s\", or remove burst",
        );
    }
    let concurrency = node.get("concurrency").and_then(Node::integer).and_then(|n| u32::try_from(n).ok());
    let rate = text("rate").filter(|text| Rate::parse_per_second(text).is_ok());
    if rate.is_none() && node.get("rate").is_some() {
        // An invalid rate was reported already.
        return;
    }
    let limit = LimitEntry { kind, group, concurrency, rate, burst: None }.limit();
    if let Err(error) = limit.check() {
        faults.add(node.span.start, error.to_string(), "docs/LIMITS.md describes the limits");
    }
    if !targets.insert(limit.target.clone()) {
        let what = format!("{} has another limit already", limit.target);
        faults.add(node.span.start, what, "write rate and concurrency in one limit");
    }
}
