//! Subscriptions: which events go to which sink, and what happens to those that it does not take.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Changes, Event, InvalidEvent, RESERVED};
use crate::job::{NAME_BYTES_MAX, check_name};
use crate::retry::RetryPolicy;

/// How many attempts an event gets unless a subscription says otherwise.
pub const DELIVERIES_MAX_DEFAULT: u32 = 20;

/// What a sink gets, in which portions, and how patient the relay is with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name: what its position in the log is kept under.
    pub name: String,
    /// Which events.
    pub filter: SubscriptionFilter,
    /// Which state changes are to be recorded for it.
    pub changes: Changes,
    /// How many attempts an event gets, the first included.
    pub deliveries_max: u32,
    /// How long it waits between them.
    pub backoff: RetryPolicy,
    /// What happens when they are spent.
    pub exhausted: Exhausted,
}

impl Subscription {
    /// All events that are emitted, with default patience.
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

    /// The subscription with these state changes instead.
    #[must_use]
    pub fn changes(mut self, changes: Changes) -> Self {
        self.filter.aggregate_types = changes.aggregate_types();
        self.changes = changes;
        self
    }

    /// Checks its name.
    ///
    /// # Errors
    /// [`InvalidEvent::Name`] says what is wrong with it.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        check_name("name of the subscription", &self.name, NAME_BYTES_MAX).map_err(InvalidEvent::Name)
    }

    /// What becomes of an event that was not delivered. `delivery`: which attempt that was, from 1; `acceptable`: whether another one
    /// could help; `asked`: the wait that the receiver asked for; `random`, uniform in `[0, 1)`, spreads the backoff.
    #[must_use]
    pub fn after_failure(
        &self,
        delivery: u32,
        acceptable: bool,
        asked: Option<Duration>,
        random: f64,
    ) -> Undelivered {
        match (acceptable, self.exhausted) {
            // What can never be taken is kept for people, whatever else the policy is: to halt would wait for nothing, and
            // to skip would lose it in silence.
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

/// What happens to an aggregate whose first event has spent its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// It waits for a person, and its later events behind it. All other aggregates go on.
    #[default]
    Halt,
    /// The event is noted as skipped, and the next one goes on.
    SkipEvent,
    /// The event is kept among the dead letters, and the next one goes on.
    DeadLetter,
}

/// What becomes of an event that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It is tried again after this.
    Retry(Duration),
    /// Its aggregate waits for a person.
    Halt,
    /// It is noted as skipped.
    Skip,
    /// It is kept for a person.
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

/// Which events a subscription has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionFilter {
    /// Of aggregates of these types. Empty: of all but those that are [reserved](RESERVED).
    pub aggregate_types: Vec<String>,
    /// Of these types. Empty: of all.
    pub event_types: Vec<String>,
}

impl SubscriptionFilter {
    /// Whether a subscription has an event.
    #[must_use]
    pub fn has(&self, event: &Event) -> bool {
        self.has_type(&event.aggregate.kind, &event.event_type)
    }

    /// Whether a subscription has events of this type of aggregates of that type.
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
