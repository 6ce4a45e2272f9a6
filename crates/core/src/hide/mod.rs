//! Hidden data: values at configured paths of stored JSON, which users of a server see as `"[hidden]"`.

mod definition;
mod path;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::batch::due::{CANNOT_START, EXPRESSION};
use crate::pattern::{check_pattern, matches_any};
use crate::token::Role;

use self::path::{Active, Below, Step, below, mask_below, mask_json_text, parse, visit};

/// The text in place of a hidden value.
pub const PLACEHOLDER: &str = "[hidden]";
/// The maximum number of rules.
pub const RULES_MAX: usize = 100;
/// The maximum number of paths of all rules.
pub const PATHS_MAX: usize = 500;
/// The maximum number of steps of a path.
pub const STEPS_MAX: usize = 16;
/// The maximum length of a path, in bytes.
pub const PATH_BYTES_MAX: usize = 500;

/// Returns whether a text may be a JSON object or list, which has values at paths.
#[must_use]
pub fn is_structured(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Which values are hidden in the JSON of some kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HideRule {
    /// Patterns of kinds of jobs, of names of bulk jobs and DAGs, and of types of aggregates; empty: all.
    pub kinds: Vec<String>,
    /// Paths, such as `customer.email`, `cards[*].number` and `**.iban`.
    pub paths: Vec<String>,
}

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidHide {
    /// There are too many rules or paths.
    #[error("there are {given} {what}; at most {max} are allowed")]
    TooMany {
        /// Rules or paths.
        what: &'static str,
        /// The given number.
        given: usize,
        /// The maximum.
        max: usize,
    },
    /// A rule hides nothing.
    #[error("rule {number} has no paths; name at least one, or remove the rule")]
    NoPaths {
        /// The number of the rule, from 1.
        number: usize,
    },
    /// A path is invalid.
    #[error("path {path:?}: {why}; write paths as customer.email, cards[*].number or **.iban")]
    Path {
        /// The path, shortened.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// A pattern of kinds is invalid.
    #[error("pattern {pattern:?}: {why}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The reason.
        why: String,
    },
    /// A role that cannot read jobs cannot reveal their values.
    #[error("role {0} cannot reveal values; the roles are operator and admin")]
    Role(Role),
}

/// A request that hidden data does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HideRefusal {
    /// A search by a hidden value.
    #[error(
        "values at {path} are hidden by the configuration, so jobs cannot be found by them; search by another path, or for a kind in which they are \
         not hidden"
    )]
    Search {
        /// The path of the search.
        path: String,
    },
    /// The placeholder would be stored in place of the value.
    #[error("{what} has the text \"{PLACEHOLDER}\" in place of a hidden value; give the value itself")]
    Placeholder {
        /// What would be stored.
        what: String,
    },
}

#[derive(Clone, Debug)]
struct Rule {
    kinds: Vec<String>,
    paths: Vec<Vec<Step>>,
}

/// The compiled rules, and the roles that may see hidden values on request.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    rules: Vec<Rule>,
    reveal: Vec<Role>,
}

impl Hidden {
    /// Compiles rules. `reveal`: the roles that may see hidden values on request.
    ///
    /// # Errors
    /// [`InvalidHide`] with the first fault.
    pub fn new(rules: &[HideRule], reveal: &[Role]) -> Result<Self, InvalidHide> {
        let paths = rules.iter().map(|rule| rule.paths.len()).sum();
        for (what, given, max) in [("rules", rules.len(), RULES_MAX), ("paths", paths, PATHS_MAX)] {
            if given > max {
                return Err(InvalidHide::TooMany { what, given, max });
            }
        }
        if let Some(role) = reveal.iter().find(|role| !role.allows(Role::Operator)) {
            return Err(InvalidHide::Role(*role));
        }
        let rules = rules.iter().zip(1..).map(|(rule, number)| compile(rule, number));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, reveal: reveal.to_vec() })
    }

    /// Returns whether nothing is hidden.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether a role may see hidden values on request.
    #[must_use]
    pub fn may_reveal(&self, role: Role) -> bool {
        self.reveal.contains(&role)
    }

    /// Returns whether any role may see hidden values on request.
    #[must_use]
    pub const fn can_be_revealed(&self) -> bool {
        !self.reveal.is_empty()
    }

    /// Returns the paths of a kind; `None`: those of all kinds.
    fn paths(&self, kind: Option<&str>) -> Active<'_> {
        let applies = |rule: &&Rule| kind.is_none_or(|kind| matches_any(&rule.kinds, kind));
        self.rules.iter().filter(applies).flat_map(|rule| rule.paths.iter().map(Vec::as_slice)).collect()
    }

    /// Returns JSON text of a kind with the placeholder for each hidden value; `None` if nothing is hidden in it.
    #[must_use]
    pub fn mask(&self, kind: &str, json: &str) -> Option<String> {
        let paths = self.paths(Some(kind));
        if paths.is_empty() {
            return None;
        }
        // Text that cannot be read may contain what must be hidden.
        mask_json_text(json, &paths).unwrap_or_else(|_| Some(Value::from(PLACEHOLDER).to_string()))
    }

    /// Returns whether something is hidden in JSON of this kind.
    #[must_use]
    pub fn hides_in(&self, kind: &str) -> bool {
        !self.paths(Some(kind)).is_empty()
    }

    /// Replaces the hidden values of JSON of a kind.
    pub fn mask_json(&self, kind: &str, json: &mut Box<RawValue>) {
        if let Some(masked) = self.mask(kind, json.get()).and_then(|text| RawValue::from_string(text).ok()) {
            *json = masked;
        }
    }

    /// Replaces the hidden values of a text of a kind, if it is a JSON object or list. Other texts have no paths.
    pub fn mask_text(&self, kind: &str, text: &mut String) {
        if is_structured(text)
            && serde_json::from_str::<&RawValue>(text).is_ok()
            && let Some(masked) = self.mask(kind, text)
        {
            *text = masked;
        }
    }

    /// Replaces a text, whose kind is not known, if it is a JSON object or list.
    pub fn mask_text_of_any(&self, text: &mut String) {
        if is_structured(text) && !self.is_empty() {
            PLACEHOLDER.clone_into(text);
        }
    }

    /// Replaces the values that are hidden in any kind, at any depth of a value. `begins`: whether paths begin at a member with this name.
    pub fn mask_within(&self, value: &mut Value, begins: fn(&str) -> bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_within(item, begins)),
            Value::Object(members) => {
                for (name, member) in members {
                    if begins(name) {
                        self.mask_member(member);
                    } else {
                        self.mask_within(member, begins);
                    }
                }
            }
            _ => {}
        }
    }

    /// Replaces the values that are hidden in any kind, in a value or in the text of one.
    fn mask_member(&self, member: &mut Value) {
        let paths = self.paths(None);
        let Value::String(text) = member else {
            mask_below(member, &paths);
            return;
        };
        if let Ok(Some(masked)) = mask_json_text(text, &paths) {
            *text = masked;
        }
    }

    /// Replaces what follows the code in an error of a task without a job: expressions and schemas quote the values that do not fit.
    pub fn mask_quotes(&self, error: &mut String) {
        if let Some((code, _)) = error.split_once(": ")
            && [EXPRESSION, CANNOT_START].contains(&code)
            && !self.is_empty()
        {
            *error = format!("{code}: {PLACEHOLDER}");
        }
    }

    /// Returns whether JSON of a kind has the placeholder where a value is hidden.
    #[must_use]
    pub fn has_placeholder(&self, kind: &str, json: &str) -> bool {
        let paths = self.paths(Some(kind));
        let Ok(before) = serde_json::from_str::<Value>(json) else { return false };
        if paths.is_empty() || !json.contains(PLACEHOLDER) {
            return false;
        }
        let mut found = false;
        let mut value = before;
        visit(&mut value, &paths, &mut |hidden| found |= hidden == PLACEHOLDER);
        found
    }

    /// Refuses a search for a value that is hidden, contains a hidden value, or is a part of one. `kind`: the only kind of the search.
    ///
    /// # Errors
    /// [`HideRefusal::Search`].
    pub fn check_search(&self, kind: Option<&str>, path: &[String]) -> Result<(), HideRefusal> {
        let mut active = self.paths(kind);
        for name in path {
            let item = name.parse().ok();
            let below = below(&active, |step| match step {
                Step::Member(its) => its == name,
                Step::Item(its) => item == Some(*its),
                Step::AnyItem => item.is_some(),
                Step::AnyMember | Step::Anywhere => true,
            });
            match below {
                Below::Hidden => return Err(HideRefusal::Search { path: path.join(".") }),
                Below::Active(rests) => active = rests,
            }
        }
        if active.is_empty() { Ok(()) } else { Err(HideRefusal::Search { path: path.join(".") }) }
    }
}

fn compile(rule: &HideRule, number: usize) -> Result<Rule, InvalidHide> {
    if rule.paths.is_empty() {
        return Err(InvalidHide::NoPaths { number });
    }
    for pattern in &rule.kinds {
        check_pattern(pattern)
            .map_err(|why| InvalidHide::Pattern { pattern: pattern.chars().take(60).collect(), why })?;
    }
    let paths = rule.paths.iter().map(|path| {
        parse(path).map_err(|why| InvalidHide::Path { path: path.chars().take(60).collect(), why })
    });
    Ok(Rule { kinds: rule.kinds.clone(), paths: paths.collect::<Result<_, _>>()? })
}
