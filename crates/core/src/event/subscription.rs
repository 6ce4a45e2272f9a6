//! Subscriptions: the events that a sink receives, and what happens to events that it does not accept.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Changes, Event, InvalidEvent, RESERVED};
use crate::job::{NAME_BYTES_MAX, check_name};
use crate::retry::RetryPolicy;

/// The default maximum number of attempts to deliver an event.
pub const DELIVERIES_MAX_DEFAULT: u32 = 20;

/// The settings of a subscription: the events of a sink, and its retries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name, under which its position in the log is stored.
    pub name: String,
    /// The events it receives.
    pub filter: SubscriptionFilter,
    /// The state changes that are recorded for it.
    pub changes: Changes,
    /// The maximum number of attempts to deliver an event, including the first.
    pub deliveries_max: u32,
    /// The backoff between attempts.
    pub backoff: RetryPolicy,
    /// What happens after the last attempt.
    pub exhausted: Exhausted,
}

impl Subscription {
    /// Creates a subscription to all emitted events, with default retries.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            filter: SubscriptionFilter::default(),
            changes: Changes::default(),
            deliveries_max: DELIVERIES_MAX_DEFAULT,
            backoff: RetryPolicy { cap: Duration::from_secs(300), ..RetryPolicy::default() },
            exhausted: Exhausted::default(),
        }
    }

    /// Makes the subscription receive these state changes instead.
    #[must_use]
    pub fn changes(mut self, changes: Changes) -> Self {
        self.filter.aggregate_types = changes.aggregate_types();
        self.changes = changes;
        self
    }

    /// Checks its name.
    ///
    /// # Errors
    /// [`InvalidEvent::Name`] with the reason.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        check_name("name of the subscription", &self.name, NAME_BYTES_MAX).map_err(InvalidEvent::Name)
    }

    /// Returns what happens to an event that was not delivered. `delivery`: the number of the attempt, from 1; `acceptable`: whether
    /// a retry can succeed; `asked`: the delay that the receiver requested; `random`, uniform in `[0, 1)`: the jitter of the backoff.
    #[must_use]
    pub fn after_failure(
        &self,
        delivery: u32,
        acceptable: bool,
        asked: Option<Duration>,
        random: f64,
    ) -> Undelivered {
        match (acceptable, self.exhausted) {
            // An event that can never be accepted is always kept as a dead letter, whatever the policy: halting would
            // block the aggregate without a chance of success, and skipping would lose the event silently.
            (false, _) => Undelivered::DeadLetter,
            (true, _) if delivery < self.deliveries_max => {
                Undelivered::Retry(self.backoff.delay(delivery, random).max(asked.unwrap_or_default()))
            }
            (true, Exhausted::Halt) => Undelivered::Halt,
            (true, Exhausted::SkipEvent) => Undelivered::Skip,
            (true, Exhausted::DeadLetter) => Undelivered::DeadLetter,
        }
    }
}

/// What happens to an aggregate when the first of its events has used all attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// The aggregate is halted until an operator acts; its later events wait. Other aggregates continue.
    #[default]
    Halt,
    /// The event is recorded as skipped, and the next one is published.
    SkipEvent,
    /// The event is kept as a dead letter, and the next one is published.
    DeadLetter,
}

/// What happens to an event that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It is retried after this delay.
    Retry(Duration),
    /// Its aggregate is halted until an operator acts.
    Halt,
    /// It is recorded as skipped.
    Skip,
    /// It is kept as a dead letter for an operator.
    DeadLetter,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(wait) if wait.as_secs() < 10 => write!(f, "retry in {} ms", wait.as_millis()),
            Self::Retry(wait) => write!(f, "retry in {} s", wait.as_secs()),
            Self::Halt => f.write_str("halted"),
            Self::Skip => f.write_str("skipped"),
            Self::DeadLetter => f.write_str("dead letter"),
        }
    }
}

/// A filter for the events of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionFilter {
    /// Events of aggregates of these types. Empty: all types that are not [reserved](RESERVED).
    pub aggregate_types: Vec<String>,
    /// Events of these types. Empty: all types.
    pub event_types: Vec<String>,
}

impl SubscriptionFilter {
    /// Returns whether the subscription receives an event.
    #[must_use]
    pub fn has(&self, event: &Event) -> bool {
        self.has_type(&event.aggregate.kind, &event.event_type)
    }

    /// Returns whether the subscription receives events with this event type and aggregate type.
    #[must_use]
    pub fn has_type(&self, aggregate_type: &str, event_type: &str) -> bool {
        let names = |names: &[String], name: &str| names.iter().any(|it| it == name);
        let of_aggregate = if self.aggregate_types.is_empty() {
            !aggregate_type.starts_with(RESERVED)
        } else {
            names(&self.aggregate_types, aggregate_type)
        };
        of_aggregate && (self.event_types.is_empty() || names(&self.event_types, event_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patient(exhausted: Exhausted) -> Subscription {
        let backoff = RetryPolicy::fixed(Duration::from_secs(2));
        Subscription { deliveries_max: 3, backoff, exhausted, ..Subscription::new("s") }
    }

    #[test]
    fn an_event_is_tried_until_its_attempts_are_spent() {
        let s = patient(Exhausted::Halt);
        let minute = Duration::from_secs(60);
        assert_eq!(s.after_failure(1, true, None, 0.5), Undelivered::Retry(Duration::from_secs(2)));
        assert_eq!(s.after_failure(2, true, Some(minute), 0.5), Undelivered::Retry(minute));
        assert_eq!(s.after_failure(3, true, None, 0.5), Undelivered::Halt);
        assert_eq!(patient(Exhausted::SkipEvent).after_failure(3, true, None, 0.5), Undelivered::Skip);
        assert_eq!(patient(Exhausted::DeadLetter).after_failure(9, true, None, 0.5), Undelivered::DeadLetter);
    }

    #[test]
    fn what_becomes_of_an_event_is_told_in_words() {
        let retry = |ms| Undelivered::Retry(Duration::from_millis(ms)).to_string();
        assert_eq!((retry(192), retry(300_500)), ("retry in 192 ms".to_owned(), "retry in 300 s".to_owned()));
        assert_eq!(Undelivered::Halt.to_string(), "halted");
    }

    #[test]
    fn state_changes_go_to_those_only_who_want_them() {
        let (emitted, mut wanted) = (SubscriptionFilter::default(), Subscription::new("s"));
        assert!(
            emitted.has_type("order", "paid")
                && !emitted.has_type("milepost.job.mail", "milepost.job.failed")
        );
        wanted = wanted.changes(Changes { kinds: vec!["mail".to_owned()], dags: Vec::new() });
        assert!(wanted.filter.has_type("milepost.job.mail", "milepost.job.failed"));
        assert!(!wanted.filter.has_type("milepost.job.bill", "milepost.job.failed"));
        assert!(!wanted.filter.has_type("order", "paid"));
    }

    #[test]
    fn what_can_never_be_taken_is_kept_at_once_whatever_the_policy() {
        for exhausted in [Exhausted::Halt, Exhausted::SkipEvent, Exhausted::DeadLetter] {
            assert_eq!(patient(exhausted).after_failure(1, false, None, 0.5), Undelivered::DeadLetter);
        }
    }
}
