//! `[hide]`: values in stored JSON that users of the server do not see.

use milepost_core::hide::{Hidden, HideRule};
use milepost_core::token::Role;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;

/// Values in payloads, results and events that the console and the API show as `"[hidden]"`. Workers, sinks and the command line get the real values.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hide {
    /// The roles that may see hidden values of a job on request, with an entry in the audit: `operator`, `admin`. The default is none.
    reveal: Vec<RevealRole>,
    /// What is hidden.
    rules: Vec<HideEntry>,
}

/// A role that may see hidden values.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RevealRole {
    Operator,
    Admin,
}

/// Paths that are hidden in the JSON of some kinds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HideEntry {
    /// The kinds of jobs, names of bulk jobs and DAGs, and types of aggregates that the paths apply to: names, or beginnings of names and `*`. The
    /// default is all.
    #[serde(default)]
    kinds: Vec<String>,
    /// The paths: `customer.email`, `cards[*].number` for each item of a list, `*.name` for each member, `**.iban` at any depth.
    paths: Vec<String>,
}

impl Hide {
    /// Returns the compiled rules of a checked file.
    pub(crate) fn hidden(&self) -> Hidden {
        let rules: Vec<HideRule> = self
            .rules
            .iter()
            .map(|rule| HideRule { kinds: rule.kinds.clone(), paths: rule.paths.clone() })
            .collect();
        let role = |role: &RevealRole| match role {
            RevealRole::Operator => Role::Operator,
            RevealRole::Admin => Role::Admin,
        };
        let reveal: Vec<Role> = self.reveal.iter().map(role).collect();
        Hidden::new(&rules, &reveal).unwrap_or_default()
    }
}

pub(super) fn check(hide: Option<&Node>, faults: &mut Faults) {
    let Some(rules) = hide.and_then(|hide| hide.get("rules")) else { return };
    let texts = |node: &Node, key: &str| -> Vec<String> {
        let nodes = node.get(key).map(Node::nodes).unwrap_or_default();
        nodes.iter().filter_map(Node::text).map(str::to_owned).collect()
    };
    let mut all = Vec::new();
    // The schema reports rules without paths.
    for node in rules.nodes().iter().filter(|node| node.get("paths").is_some()) {
        let rule = HideRule { kinds: texts(node, "kinds"), paths: texts(node, "paths") };
        if let Err(invalid) = Hidden::new(std::slice::from_ref(&rule), &[]) {
            faults.add(
                node.span.start,
                invalid.to_string(),
                "docs/guides/hide-personal-data.md describes the rules",
            );
            return;
        }
        all.push(rule);
    }
    if let Err(invalid) = Hidden::new(&all, &[]) {
        faults.add(rules.span.start, invalid.to_string(), "use `*` and `**` to hide more with fewer paths");
    }
}
