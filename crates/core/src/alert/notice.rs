//! Notices to targets: which incidents a target is notified of, and when a failed message is tried again.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{AlertRule, Incident, Severity, TARGET_IN_USE};
use crate::duration::between;
use crate::named::named_enum;

/// The wait after the first failed message; it doubles with each further one.
const WAIT_MIN: Duration = Duration::from_secs(10);
/// The maximum wait after a failed message.
const WAIT_MAX: Duration = Duration::from_secs(10 * 60);
/// From this number of failed messages, a target is reported as failing.
const FAILING_FROM: u32 = 3;

named_enum! {
    /// What a notice reports.
    Stage {
        /// The incident has begun.
        Begun = "begun",
        /// The incident has ended.
        Ended = "ended",
    }
}

/// The alerts that a target is notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRules {
    /// The name of the target.
    pub target: String,
    /// The rules; all if empty.
    pub rules: Vec<AlertRule>,
    /// Less urgent alerts are not sent.
    pub min_severity: Severity,
    /// How long an alert must last before it is sent.
    pub hold: Duration,
    /// The minimum time between two messages that the same alert has begun.
    pub repeat_after: Duration,
}

impl NoticeRules {
    /// The default of `hold`.
    pub const HOLD_DEFAULT: Duration = Duration::from_secs(60);
    /// The default of `repeat_after`.
    pub const REPEAT_AFTER_DEFAULT: Duration = Duration::from_secs(30 * 60);

    /// Creates the rules of a target that is notified of all alerts.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            rules: Vec::new(),
            min_severity: Severity::Warning,
            hold: Self::HOLD_DEFAULT,
            repeat_after: Self::REPEAT_AFTER_DEFAULT,
        }
    }

    /// Returns the notices that are due for the target at this time of the store's clock.
    #[must_use]
    pub fn due(&self, candidates: Vec<Candidate>, now: Timestamp) -> Notices {
        let mut due = Notices::default();
        for candidate in candidates {
            if candidate.is_notified {
                // A target that was notified of the beginning is notified of the end, regardless of its current rules and silences.
                if candidate.incident.ended_at.is_some() {
                    due.ended.push(candidate.incident);
                }
            } else if self.is_begun(&candidate, now) {
                due.begun.push(candidate.incident);
            }
        }
        due
    }

    fn is_begun(&self, candidate: &Candidate, now: Timestamp) -> bool {
        let incident = &candidate.incident;
        // Observed for this long: time without any server does not count.
        let lasted = between(incident.first_seen_at, incident.last_seen_at);
        incident.ended_at.is_none()
            && incident.silence.is_none()
            && incident.severity >= self.min_severity
            && (self.rules.is_empty() || self.rules.contains(&incident.rule))
            && lasted >= self.hold
            && candidate.last_begun_at.is_none_or(|at| between(at, now) >= self.repeat_after)
    }
}

/// An incident of which a target may have to be notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The incident: open, or ended without a notice to the target.
    pub incident: Incident,
    /// Whether the target was notified that it has begun.
    pub is_notified: bool,
    /// When the target was last notified that the same alert has begun, in this incident or an earlier one.
    pub last_begun_at: Option<Timestamp>,
}

/// Times of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeTimes {
    /// How long a claimed message may take. After that, any server may send it again.
    pub lease: Duration,
    /// The minimum time between two messages to a target.
    pub pause: Duration,
}

impl Default for NoticeTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(60), pause: Duration::from_secs(60) }
    }
}

/// The notices of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// Incidents that have begun.
    pub begun: Vec<Incident>,
    /// Incidents that have ended.
    pub ended: Vec<Incident>,
}

impl Notices {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.ended.is_empty()
    }

    /// Iterates over the incidents, each with the stage that is reported.
    pub fn all(&self) -> impl Iterator<Item = (Stage, &Incident)> {
        let begun = self.begun.iter().map(|incident| (Stage::Begun, incident));
        begun.chain(self.ended.iter().map(|incident| (Stage::Ended, incident)))
    }
}

/// A message that one server has claimed. No other server sends to the target before the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeClaim {
    /// The name of the target.
    pub target: String,
    /// The number of the claim, the fence of its outcome.
    pub number: i64,
    /// The number of messages that have failed in succession before this one.
    pub failures: u32,
    /// The notices of the message.
    pub notices: Notices,
}

/// The outcome of a claimed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// The target has accepted it.
    Delivered,
    /// It was not delivered; it is tried again after this wait.
    Failed {
        /// The error, without secrets.
        why: String,
        /// The wait.
        wait: Duration,
    },
}

/// Returns the wait after a message has failed; `failures`: the number of messages that have failed in succession before it.
#[must_use]
pub fn retry_wait(failures: u32) -> Duration {
    WAIT_MIN.saturating_mul(1 << failures.min(10)).min(WAIT_MAX)
}

/// A target of alerts, as a store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertTarget {
    /// Its name in the configuration.
    pub name: String,
    /// When a server with this target last looked for alerts.
    pub seen_at: Timestamp,
    /// When a message was last delivered.
    pub sent_at: Option<Timestamp>,
    /// Since when messages fail; null if the last one was delivered.
    pub failing_since: Option<Timestamp>,
    /// The number of messages that have failed in succession.
    pub failures: u32,
    /// The last error; null if the last message was delivered.
    pub last_error: Option<String>,
    /// When the failed message is tried again, at the earliest.
    pub next_at: Option<Timestamp>,
}

impl AlertTarget {
    /// Returns since when messages fail, if the target is in use and has failed too often.
    #[must_use]
    pub fn failing(&self, now: Timestamp) -> Option<Timestamp> {
        let in_use = between(self.seen_at, now) < TARGET_IN_USE;
        self.failing_since.filter(|_| in_use && self.failures >= FAILING_FROM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::{Silence, SilenceUntil};
    use crate::ident::IncidentId;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A warning that was observed from second 0 to second `until`.
    fn candidate(until: i64) -> Candidate {
        let incident = Incident {
            id: IncidentId::new(),
            rule: AlertRule::QueuePaused,
            subject: "mail".to_owned(),
            severity: Severity::Warning,
            title: "Queue mail is paused".to_owned(),
            words: String::new(),
            command: String::new(),
            first_seen_at: at(0),
            last_seen_at: at(until),
            ended_at: None,
            silence: None,
        };
        Candidate { incident, is_notified: false, last_begun_at: None }
    }

    fn begins(rules: &NoticeRules, candidate: &Candidate, now: i64) -> bool {
        rules.due(vec![candidate.clone()], at(now)).begun.len() == 1
    }

    #[test]
    fn an_alert_is_sent_when_it_has_lasted_long_enough() {
        let rules = NoticeRules::new("oncall");
        assert!(!begins(&rules, &candidate(59), 59));
        assert!(begins(&rules, &candidate(60), 60));
        // No server has looked since.
        assert!(!begins(&rules, &candidate(30), 600));
    }

    #[test]
    fn a_target_is_told_only_what_it_asks_for() {
        let errors = NoticeRules { min_severity: Severity::Error, ..NoticeRules::new("oncall") };
        let others = NoticeRules { rules: vec![AlertRule::JobsFailed], ..NoticeRules::new("oncall") };
        let mut alert = candidate(60);
        assert!(!begins(&errors, &alert, 60) && !begins(&others, &alert, 60));
        (alert.incident.severity, alert.incident.rule) = (Severity::Error, AlertRule::JobsFailed);
        assert!(begins(&errors, &alert, 60) && begins(&others, &alert, 60));
        alert.incident.silence = Some(Silence { by: "ada".to_owned(), reason: None, at: at(1), until: None });
        assert!(!begins(&errors, &alert, 60));
        assert_eq!(SilenceUntil::Over.duration(), None);
    }

    #[test]
    fn an_alert_that_comes_back_is_not_repeated_too_soon() {
        let rules = NoticeRules::new("oncall");
        let again = Candidate { last_begun_at: Some(at(-600)), ..candidate(3_000) };
        assert!(!begins(&rules, &again, 1_199));
        assert!(begins(&rules, &again, 1_200));
    }

    #[test]
    fn whoever_was_told_the_beginning_is_told_the_end() {
        let rules = NoticeRules { min_severity: Severity::Error, ..NoticeRules::new("oncall") };
        let mut notified = Candidate { is_notified: true, last_begun_at: Some(at(60)), ..candidate(90) };
        assert!(rules.due(vec![notified.clone()], at(90)).is_empty());
        notified.incident.ended_at = Some(at(150));
        assert_eq!(rules.due(vec![notified.clone()], at(150)).ended, [notified.incident.clone()]);
        let unnotified = Candidate { is_notified: false, ..notified };
        assert!(rules.due(vec![unnotified], at(150)).is_empty());
    }

    #[test]
    fn the_wait_after_failures_grows_and_is_bounded() {
        let waits: Vec<u64> = [0, 1, 2, 6, 7, u32::MAX].map(|it| retry_wait(it).as_secs()).to_vec();
        assert_eq!(waits, [10, 20, 40, 600, 600, 600]);
    }
}
