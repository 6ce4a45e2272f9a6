//! `[[limits]]`: how fast kinds may start, and how fast and how many at once groups.

use std::collections::HashSet;

use milepost_core::limit::{Limit, Rate, Target};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;

/// A limit of exactly one of `kind` and `group`, for all nodes together. Limits that the file no longer names are
/// removed when the worker starts; those made by `milepost limits set` stay as they are,
/// whatever the file says of their kind or group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitEntry {
    /// The kind.
    #[serde(default)]
    kind: Option<String>,
    /// The group, or a class `prefix:*`, which stands for each group whose name starts with `prefix:`.
    #[serde(default)]
    group: Option<String>,
    /// How many jobs of the group may be under way at once.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    concurrency: Option<u32>,
    /// How many may start in a time: `10/s`, `100/m`, `2000/h`, `5/d`, `0.5/s` or `7/15m`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-rate"))]
    rate: Option<String>,
    /// How many may start at once after a pause. The default is those of a second, at least 1.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    burst: Option<u32>,
}

impl LimitEntry {
    /// The limit of a checked file.
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
        faults.add(node.span.start, format!("the limit says {what}"), remedy);
        return;
    }
    if let Some(burst) = node.get("burst").filter(|_| node.get("rate").is_none()) {
        faults.add(
            burst.span.start,
            "a burst means something only beside a rate",
            "add rate = \"10/s\", or leave it out",
        );
    }
    let concurrency = node.get("concurrency").and_then(Node::integer).and_then(|n| u32::try_from(n).ok());
    let rate = text("rate").filter(|text| Rate::parse_per_second(text).is_ok());
    if rate.is_none() && node.get("rate").is_some() {
        // What is no rate was told already.
        return;
    }
    let limit = LimitEntry { kind, group, concurrency, rate, burst: None }.limit();
    if let Err(error) = limit.check() {
        faults.add(node.span.start, error.to_string(), "docs/LIMITS.md says what limits there are");
    }
    if !targets.insert(limit.target.clone()) {
        let what = format!("{} has another limit", limit.target);
        faults.add(node.span.start, what, "a limit stands as a whole: write rate and concurrency together");
    }
}
