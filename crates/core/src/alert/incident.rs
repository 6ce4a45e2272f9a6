//! Alerts that a server observes, and the incidents that a store records.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{AlertRule, SUBJECT_BYTES_MAX, TEXT_BYTES_MAX};
use crate::ident::IncidentId;
use crate::named::named_enum;
use crate::text::{shorten, without_nul};

named_enum! {
    /// How urgent an alert is.
    Severity {
        /// An operator should know it.
        Warning = "warning",
        /// An operator must act.
        Error = "error",
    }
}

/// The identity of an alert, which stays the same while its texts and numbers change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// The kind of problem.
    pub rule: AlertRule,
    /// What has the problem, such as the name of a queue; empty for the store as a whole.
    pub subject: String,
}

impl AlertKey {
    /// Creates a key. A subject that is too long is cut.
    pub fn new(rule: AlertRule, subject: impl Into<String>) -> Self {
        Self { rule, subject: shorten(subject.into(), SUBJECT_BYTES_MAX) }
    }
}

impl fmt::Display for AlertKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject.as_str() {
            "" => f.write_str(self.rule.as_str()),
            subject => write!(f, "{}: {subject}", self.rule),
        }
    }
}

impl FromStr for AlertKey {
    type Err = crate::named::UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rule, subject) = text.split_once(": ").unwrap_or((text, ""));
        Ok(Self::new(rule.parse()?, subject))
    }
}

/// A problem that a server observes now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveAlert {
    /// Its identity.
    pub key: AlertKey,
    /// How urgent it is.
    pub severity: Severity,
    /// A few words that name it.
    pub title: String,
    /// The cause and the consequences.
    pub words: String,
    /// The command that shows more.
    pub command: String,
}

impl ActiveAlert {
    /// Cuts texts that are too long to be stored.
    #[must_use]
    pub fn bounded(self) -> Self {
        let cut = |text: String| shorten(without_nul(&text), TEXT_BYTES_MAX);
        let key = AlertKey::new(self.key.rule, without_nul(&self.key.subject));
        let (title, words, command) = (cut(self.title), cut(self.words), cut(self.command));
        Self { key, title, words, command, ..self }
    }
}

/// The record of an alert, from its first to its last observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Incident {
    /// Its id, by which receivers detect repeated messages.
    pub id: IncidentId,
    /// The kind of problem.
    pub rule: AlertRule,
    /// What has the problem, such as the name of a queue; empty for the store as a whole.
    pub subject: String,
    /// How urgent it is.
    pub severity: Severity,
    /// A few words that name it, as last observed.
    pub title: String,
    /// The cause and the consequences, as last observed.
    pub words: String,
    /// The command that shows more.
    pub command: String,
    /// When it was first observed.
    pub first_seen_at: Timestamp,
    /// When it was last observed.
    pub last_seen_at: Timestamp,
    /// When it ended; null while it is open.
    pub ended_at: Option<Timestamp>,
    /// The silence that applies to it, if any.
    pub silence: Option<Silence>,
}

impl Incident {
    /// Returns the identity of its alert.
    #[must_use]
    pub fn key(&self) -> AlertKey {
        AlertKey { rule: self.rule, subject: self.subject.clone() }
    }
}

/// A silence: targets are not notified that the alert begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Silence {
    /// Who silenced it.
    pub by: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// When it was silenced.
    pub at: Timestamp,
    /// When the silence ends; null: when the incident ends.
    pub until: Option<Timestamp>,
}

/// How long an alert is silenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceUntil {
    /// For this time, also if the alert ends and begins again.
    For(Duration),
    /// Until the incident ends.
    Over,
}

impl SilenceUntil {
    /// The choices that the console offers, with their values in forms and their labels.
    pub const CHOICES: [(&str, &str); 3] =
        [("1h", "1 hour"), ("8h", "8 hours"), ("over", "until the alert ends")];

    /// Returns the duration; `None`: until the incident ends.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::For(time) => Some(time),
            Self::Over => None,
        }
    }
}

impl FromStr for SilenceUntil {
    type Err = String;

    /// Parses `over`, or a duration such as `1h`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "over" {
            return Ok(Self::Over);
        }
        match crate::duration::parse_positive(text) {
            Ok(time) if time <= super::SILENCE_MAX => Ok(Self::For(time)),
            Ok(_) => Err("a silence lasts at most 366 days".to_owned()),
            Err(invalid) => {
                Err(format!("{invalid}; write a duration such as 1h, or over: until the alert ends"))
            }
        }
    }
}

/// Times of incidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentTimes {
    /// An incident that no server has observed for this long has ended, so that an alert that comes and goes is one incident.
    pub clear_after: Duration,
    /// How long an incident is kept after its end.
    pub keep: Duration,
}

impl Default for IncidentTimes {
    fn default() -> Self {
        const DAY: u64 = 24 * 60 * 60;
        Self { clear_after: Duration::from_secs(60), keep: Duration::from_secs(30 * DAY) }
    }
}

/// A filter for incidents: open ones first, errors first, then the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentFilter {
    /// Whether incidents that have ended are included.
    pub ended: bool,
    /// The maximum number of results.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for key in
            [AlertKey::new(AlertRule::QueuePaused, "mail: eu"), AlertKey::new(AlertRule::JobsAborted, "")]
        {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        assert!("paused: mail".parse::<AlertKey>().is_err());
    }

    #[test]
    fn a_silence_lasts_for_a_time_or_until_the_alert_ends() {
        assert_eq!("over".parse(), Ok(SilenceUntil::Over));
        assert_eq!("8h".parse(), Ok(SilenceUntil::For(Duration::from_secs(8 * 3600))));
        for bad in ["", "0s", "400d", "forever"] {
            assert!(bad.parse::<SilenceUntil>().is_err(), "{bad}");
        }
        for (value, _) in SilenceUntil::CHOICES {
            assert!(value.parse::<SilenceUntil>().is_ok(), "{value}");
        }
    }

    #[test]
    fn texts_that_are_too_long_are_cut_between_characters() {
        let alert = ActiveAlert {
            key: AlertKey::new(AlertRule::QueuePaused, "ä".repeat(SUBJECT_BYTES_MAX)),
            severity: Severity::Warning,
            title: "ä".repeat(TEXT_BYTES_MAX),
            words: "a\0b".to_owned(),
            command: String::new(),
        };
        let bounded = alert.bounded();
        assert!(
            bounded.key.subject.len() <= SUBJECT_BYTES_MAX + 3 && bounded.title.len() <= TEXT_BYTES_MAX + 3
        );
        assert_eq!(bounded.words, "a\u{fffd}b");
        assert_eq!(AlertKey::new(bounded.key.rule, bounded.key.subject.clone()), bounded.key);
    }
}
