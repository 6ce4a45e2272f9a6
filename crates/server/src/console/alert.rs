//! A problem that the overview page shows.

use std::time::Duration;

use milepost_core::alert::{ActiveAlert, AlertKey, AlertRule, Severity, Silence};
use milepost_core::text::is_unprintable;

use super::form::Action;
use super::format::{kind_url, query};

/// Maximum number of causes of failures that are listed separately.
pub(super) const CAUSES_MAX: usize = 8;

/// The delay after which an event or a tick counts as late.
pub(super) const LATE: Duration = Duration::from_secs(60);

/// A problem.
pub(crate) struct Alert {
    /// Its identity, which stays the same while its texts change.
    pub(crate) key: AlertKey,
    /// Whether an operator must act; otherwise it is only a warning.
    pub(crate) error: bool,
    pub(crate) title: String,
    pub(crate) words: String,
    pub(crate) details: Details,
    /// The page that previews an action on what the alert is about.
    pub(crate) preview: Option<Preview>,
    pub(crate) actions: Vec<Action>,
    /// The silence that an operator has set.
    pub(crate) silence: Option<Silence>,
}

/// Where details of a problem are.
#[derive(Clone)]
pub(crate) struct Details {
    /// The page.
    pub(crate) url: String,
    /// The command that shows them in a terminal.
    pub(crate) command: String,
}

impl Details {
    pub(super) fn at(url: impl Into<String>, command: impl Into<String>) -> Self {
        Self { url: url.into(), command: command.into() }
    }

    /// The jobs that match this filter, whose fields are those of the page and of `milepost jobs list`.
    pub(super) fn of_jobs(filter: &[(&str, &str)]) -> Self {
        // A value with control characters cannot be pasted: the command lists more jobs instead.
        let given = filter.iter().filter(|(_, value)| !value.is_empty() && !value.contains(is_unprintable));
        let options: String = given.map(|(name, value)| format!(" --{name}={}", quoted(value))).collect();
        Self::at(format!("/jobs?{}", query(filter)), format!("milepost jobs list{options}"))
    }

    /// A kind, and its jobs.
    pub(super) fn of_kind(kind: &str) -> Self {
        Self::at(kind_url(kind), format!("milepost jobs list --kind={}", quoted(kind)))
    }

    pub(super) fn of_queues() -> Self {
        Self::at("/queues", "milepost queues list")
    }

    pub(super) fn of_workers() -> Self {
        Self::at("/workers", "milepost workers list")
    }
}

/// Returns a value as the last argument of a command.
pub(super) fn argument(value: &str) -> String {
    let dashes = if value.starts_with('-') { "-- " } else { "" };
    format!("{dashes}{}", quoted(value))
}

/// Returns a value as a word of a command.
pub(super) fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// A link to the preview of an action on many jobs.
pub(crate) struct Preview {
    pub(crate) label: &'static str,
    pub(crate) url: String,
}

/// The identity of an alert: its rule and its subject.
pub(super) fn key(rule: AlertRule, subject: impl Into<String>) -> AlertKey {
    AlertKey::new(rule, subject)
}

/// Creates an alert without actions, which links to another page.
pub(super) fn to_look_at(key: AlertKey, error: bool, title: String, words: &str, details: Details) -> Alert {
    let words = words.to_owned();
    Alert { key, error, title, words, details, preview: None, actions: Vec::new(), silence: None }
}

impl Alert {
    /// Returns it without what only a page can show.
    pub(super) fn into_active(self) -> ActiveAlert {
        let severity = if self.error { Severity::Error } else { Severity::Warning };
        let (title, words, command) = (self.title, self.words, self.details.command);
        ActiveAlert { key: self.key, severity, title, words, command }.bounded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_contains_each_value_as_one_word() {
        let details = Details::of_jobs(&[("state", "failed"), ("kind", "it's; rm"), ("error", "")]);
        assert_eq!(details.command, r"milepost jobs list --state=failed --kind='it'\''s; rm'");
        assert_eq!(details.url, "/jobs?state=failed&kind=it%27s%3B+rm");
    }
}
