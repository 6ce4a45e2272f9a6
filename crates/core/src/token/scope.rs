//! The queues and kinds that a token is limited to.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::pattern::{check_pattern, matches_any};

/// The maximum number of patterns of queues, and of kinds, of a token.
pub const PATTERNS_MAX: usize = 50;

/// The queues and kinds that a token is limited to. A pattern is a name, or the beginning of names and a `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenScope {
    /// The patterns of queues; empty: all queues.
    #[serde(default)]
    pub queues: Vec<String>,
    /// The patterns of kinds; empty: all kinds.
    #[serde(default)]
    pub kinds: Vec<String>,
}

/// An invalid scope of a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidScope {
    /// It limits nothing.
    #[error(
        "a limited token needs at least one pattern of queues or kinds; leave the scope out for a token without limits"
    )]
    Empty,
    /// It has too many patterns.
    #[error(
        "a token can have at most {PATTERNS_MAX} patterns of {what}, not {given}; use a `*` at the end of a pattern"
    )]
    TooMany {
        /// Queues or kinds.
        what: &'static str,
        /// The given number.
        given: usize,
    },
    /// A pattern cannot be the beginning of a name.
    #[error("pattern {pattern:?}: {why}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The reason.
        why: String,
    },
}

/// The refusal of a call with a limited token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}, but this token is limited to {scope}; use a token without limits, or one with others")]
pub struct OutsideScope {
    what: String,
    scope: TokenScope,
}

impl TokenScope {
    /// Refuses a call. `what`: the reason, such as `the queue is "billing"`.
    #[must_use]
    pub fn refusal(&self, what: impl Into<String>) -> OutsideScope {
        OutsideScope { what: what.into(), scope: self.clone() }
    }

    /// Returns whether jobs of this queue are in the scope, if their kind is, too.
    #[must_use]
    pub fn has_queue(&self, queue: &str) -> bool {
        matches_any(&self.queues, queue)
    }

    /// Returns whether jobs of this kind are in the scope, if their queue is, too.
    #[must_use]
    pub fn has_kind(&self, kind: &str) -> bool {
        matches_any(&self.kinds, kind)
    }

    /// Returns whether jobs of this queue and kind are in the scope.
    #[must_use]
    pub fn has(&self, queue: &str, kind: &str) -> bool {
        self.has_queue(queue) && self.has_kind(kind)
    }

    /// Returns whether a queue as a whole is in the scope: a token that is limited to kinds only has no queue.
    #[must_use]
    pub fn owns_queue(&self, queue: &str) -> bool {
        !self.queues.is_empty() && self.has_queue(queue)
    }

    /// Returns whether a kind as a whole is in the scope: a token that is limited to queues only has no kind.
    #[must_use]
    pub fn owns_kind(&self, kind: &str) -> bool {
        !self.kinds.is_empty() && self.has_kind(kind)
    }

    /// Checks the number and the form of the patterns.
    ///
    /// # Errors
    /// [`InvalidScope`] with the reason.
    pub fn check(&self) -> Result<(), InvalidScope> {
        if self.queues.is_empty() && self.kinds.is_empty() {
            return Err(InvalidScope::Empty);
        }
        for (what, patterns) in [("queues", &self.queues), ("kinds", &self.kinds)] {
            if patterns.len() > PATTERNS_MAX {
                return Err(InvalidScope::TooMany { what, given: patterns.len() });
            }
            for pattern in patterns {
                check_pattern(pattern).map_err(|why| InvalidScope::Pattern {
                    pattern: pattern.chars().take(60).collect(),
                    why,
                })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for TokenScope {
    /// Writes it as in `queues mail*, kinds mail.*`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("queues", &self.queues), ("kinds", &self.kinds)];
        let parts = parts.iter().filter(|(_, patterns)| !patterns.is_empty());
        let parts: Vec<String> =
            parts.map(|(what, patterns)| format!("{what} {}", patterns.join(", "))).collect();
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NAME_BYTES_MAX;

    fn scope(queues: &[&str], kinds: &[&str]) -> TokenScope {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        TokenScope { queues: owned(queues), kinds: owned(kinds) }
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names() {
        let both = scope(&["mail*", "news"], &["mail.*"]);
        for (queue, kind, expected) in [
            ("mail", "mail.send", true),
            ("mail-2", "mail.", true),
            ("news", "mail.send", true),
            ("news-2", "mail.send", false),
            ("Mail", "mail.send", false),
            ("mail", "mail", false),
            ("mail", "billing.mail.", false),
        ] {
            assert_eq!(both.has(queue, kind), expected, "{queue} {kind}");
        }
        assert!(scope(&["mail"], &[]).has("mail", "any") && !scope(&[], &["k"]).has("q", "other"));
    }

    #[test]
    fn only_a_token_that_is_limited_to_queues_has_queues() {
        let (of_queues, of_kinds) = (scope(&["mail"], &[]), scope(&[], &["mail.*"]));
        assert!(of_queues.owns_queue("mail") && !of_queues.owns_kind("mail.send"));
        assert!(of_kinds.owns_kind("mail.send") && !of_kinds.owns_queue("mail"));
    }

    #[test]
    fn a_scope_that_cannot_be_is_refused_with_its_pattern() {
        assert_eq!(scope(&["mail*"], &["mail.*"]).check(), Ok(()));
        assert_eq!(scope(&["*"], &[]).check(), Ok(()));
        assert_eq!(scope(&[], &[]).check(), Err(InvalidScope::Empty));
        let many = vec!["q"; PATTERNS_MAX + 1];
        assert!(matches!(scope(&many, &[]).check(), Err(InvalidScope::TooMany { what: "queues", .. })));
        for bad in ["", "a*b", "**", "a\nb", "..", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(matches!(scope(&[], &[bad]).check(), Err(InvalidScope::Pattern { .. })), "{bad}");
        }
    }

    #[test]
    fn a_scope_is_shown_with_its_patterns() {
        assert_eq!(scope(&["mail*", "news"], &["mail.*"]).to_string(), "queues mail*, news; kinds mail.*");
    }
}
