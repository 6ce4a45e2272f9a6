//! What an enqueue does when another job of the kind has the same key.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::InvalidJob;
use crate::duration::{WAIT_MAX, whole_ms};
use crate::named::named_enum;
use crate::state::JobState;

/// The note in the history of a job that another enqueue replaced.
pub const REPLACED_NOTE: &str = "replaced by another enqueue with its key";
/// The note in the history of a job that another enqueue moved later.
pub const MOVED_NOTE: &str = "moved by another enqueue with its key";

named_enum! {
    /// What an enqueue does when a job holds its key.
    DuplicateAction {
        /// The existing job stays as it is.
        Keep = "keep",
        /// A job that has not started gets the payload and the options of the new one.
        Replace = "replace",
        /// Like `replace`, and the job starts after the delay, counted from this call, but not later than the longest delay after its creation.
        Debounce = "debounce",
        /// At most one job with the key is created in a period; others are dropped.
        Throttle = "throttle",
    }
}

named_enum! {
    /// How long a job holds its key.
    Unique {
        /// Until retention deletes the key.
        Forever = "forever",
        /// Until the job has ended or failed permanently.
        Live = "live",
        /// Until the job starts for the first time, or ends without a start.
        Waiting = "waiting",
    }
}

named_enum! {
    /// The result of an enqueue.
    EnqueueOutcome {
        /// A job was created.
        Created = "created",
        /// The job that holds the key stays as it was.
        Kept = "kept",
        /// The job that holds the key has the payload and the options of the new one.
        Replaced = "replaced",
        /// As `replaced`, and it starts later.
        Moved = "moved",
        /// The period of the job that holds the key has not passed; it stays as it was.
        Dropped = "dropped",
    }
}

/// What an enqueue does when a job of its kind holds its key, and how long that job holds it.
///
/// In SQL and JSON this is an object with the same fields, such as `{"action": "debounce", "delay_ms": 5000, "max_delay_ms": 60000}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OnDuplicate {
    /// What happens to the job that holds the key.
    pub action: DuplicateAction,
    /// `debounce`: how long after the last call the job starts, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub delay_ms: Option<u64>,
    /// `debounce`: how long after its creation the job starts at the latest, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_delay_ms: Option<u64>,
    /// `throttle`: the period in which one job is created, in milliseconds from the creation of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub period_ms: Option<u64>,
    /// How long a job holds the key. The default is `forever` for `keep`, and `waiting` for `replace` and `debounce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// Instead of `unique`: how long a job holds the key after it has ended or failed permanently, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub unique_for_ms: Option<u64>,
}

/// Until when a job holds its key, for one call.
enum Hold {
    Until(Unique),
    AfterEnd(u64),
    AfterCreation(u64),
}

/// The job that holds a key, as a call finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its state; `None` if retention has deleted it.
    pub state: Option<JobState>,
    /// Whether it was ever claimed.
    pub has_started: bool,
    /// When it was created, in Unix milliseconds; `None` if retention has deleted it.
    pub created_at_ms: Option<i64>,
    /// When it ended or failed permanently, in Unix milliseconds.
    pub over_at_ms: Option<i64>,
}

impl Holder {
    /// Returns whether it waits for its first start, so that its payload and options can be replaced.
    #[must_use]
    pub const fn waits(&self) -> bool {
        !self.has_started && matches!(self.state, Some(JobState::Blocked | JobState::Pending))
    }
}

impl OnDuplicate {
    const fn of(action: DuplicateAction) -> Self {
        Self {
            action,
            delay_ms: None,
            max_delay_ms: None,
            period_ms: None,
            unique: None,
            unique_for_ms: None,
        }
    }

    /// The existing job stays as it is. Without [`unique`](Self::unique), this is the same as a key alone.
    #[must_use]
    pub const fn keep() -> Self {
        Self::of(DuplicateAction::Keep)
    }

    /// A job that has not started gets the payload and the options of the new one. If it has started, a next job is created.
    #[must_use]
    pub const fn replace() -> Self {
        Self::of(DuplicateAction::Replace)
    }

    /// The job starts `delay` after the last call, with its payload, but not later than `max_delay` after the first call.
    #[must_use]
    pub fn debounce(delay: Duration, max_delay: Duration) -> Self {
        let (delay_ms, max_delay_ms) = (Some(ms(delay)), Some(ms(max_delay)));
        Self { delay_ms, max_delay_ms, ..Self::of(DuplicateAction::Debounce) }
    }

    /// At most one job is created in a period; other calls are dropped.
    #[must_use]
    pub fn throttle(period: Duration) -> Self {
        Self { period_ms: Some(ms(period)), ..Self::of(DuplicateAction::Throttle) }
    }

    /// Sets how long a job holds the key.
    #[must_use]
    pub const fn unique(mut self, unique: Unique) -> Self {
        self.unique = Some(unique);
        self
    }

    /// Sets how long a job holds the key after it has ended or failed permanently.
    #[must_use]
    pub fn unique_for(mut self, time: Duration) -> Self {
        self.unique_for_ms = Some(ms(time));
        self
    }

    /// Checks that the fields fit the action, and their ranges.
    ///
    /// # Errors
    /// [`InvalidJob::OnDuplicate`] with the fault and the remedy.
    pub fn check(&self) -> Result<(), InvalidJob> {
        let is_debounce = self.action == DuplicateAction::Debounce;
        let is_throttle = self.action == DuplicateAction::Throttle;
        let is_out_of_range =
            |ms: Option<u64>| ms.is_some_and(|ms| ms == 0 || ms > whole_ms(WAIT_MAX).unsigned_abs());
        let times = [self.delay_ms, self.max_delay_ms, self.period_ms, self.unique_for_ms];
        let why = if is_debounce != (self.delay_ms.is_some() && self.max_delay_ms.is_some())
            || !is_debounce && (self.delay_ms.is_some() || self.max_delay_ms.is_some())
        {
            "debounce needs delay_ms and max_delay_ms, and other actions have neither"
        } else if is_throttle != self.period_ms.is_some() {
            "throttle needs period_ms, and other actions do not have it"
        } else if is_throttle && (self.unique.is_some() || self.unique_for_ms.is_some()) {
            "throttle has no unique: its period decides how long a job holds the key"
        } else if self.unique.is_some() && self.unique_for_ms.is_some() {
            "unique and unique_for_ms exclude each other; give one of them"
        } else if times.into_iter().any(is_out_of_range) {
            "its times must be from 1 ms to a hundred years"
        } else if self.delay_ms > self.max_delay_ms {
            "delay_ms must not be longer than max_delay_ms"
        } else {
            return Ok(());
        };
        Err(InvalidJob::OnDuplicate { why })
    }

    fn hold(&self) -> Hold {
        match (self.unique_for_ms, self.unique, self.action) {
            (Some(ms), ..) => Hold::AfterEnd(ms),
            (_, Some(unique), _) => Hold::Until(unique),
            (.., DuplicateAction::Throttle) => Hold::AfterCreation(self.period_ms.unwrap_or(1)),
            (.., DuplicateAction::Keep) => Hold::Until(Unique::Forever),
            (.., DuplicateAction::Replace | DuplicateAction::Debounce) => Hold::Until(Unique::Waiting),
        }
    }

    /// Decides what a call at `now_ms` does. [`Created`](EnqueueOutcome::Created): the holder no longer holds the key, which the new job takes.
    #[must_use]
    pub fn decide(&self, holder: &Holder, now_ms: i64) -> EnqueueOutcome {
        let has_passed = |since: Option<i64>, ms| since.is_some_and(|since| later(since, ms) <= now_ms);
        let is_free = match self.hold() {
            Hold::Until(Unique::Forever) => false,
            Hold::Until(Unique::Live) => holder.over_at_ms.is_some(),
            Hold::Until(Unique::Waiting) => !holder.waits(),
            Hold::AfterEnd(ms) => has_passed(holder.over_at_ms, ms),
            // Of a deleted job only the end is known.
            Hold::AfterCreation(ms) => has_passed(holder.created_at_ms.or(holder.over_at_ms), ms),
        };
        match self.action {
            _ if is_free => EnqueueOutcome::Created,
            DuplicateAction::Throttle => EnqueueOutcome::Dropped,
            DuplicateAction::Replace if holder.waits() => EnqueueOutcome::Replaced,
            DuplicateAction::Debounce if holder.waits() => EnqueueOutcome::Moved,
            _ => EnqueueOutcome::Kept,
        }
    }

    /// Returns when a debounced job starts; `None` for other actions.
    #[must_use]
    pub fn debounced_start_ms(&self, created_at_ms: i64, now_ms: i64) -> Option<i64> {
        let (delay, longest) = (self.delay_ms?, self.max_delay_ms?);
        Some(later(now_ms, delay).min(later(created_at_ms, longest)).max(now_ms))
    }
}

fn ms(duration: Duration) -> u64 {
    whole_ms(duration).unsigned_abs()
}

fn later(at_ms: i64, ms: u64) -> i64 {
    at_ms.saturating_add_unsigned(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Holder = Holder {
        state: Some(JobState::Pending),
        has_started: false,
        created_at_ms: Some(1_000),
        over_at_ms: None,
    };
    const RUNS: Holder = Holder { state: Some(JobState::Running), has_started: true, ..WAITS };
    const FAILED: Holder = Holder { state: Some(JobState::Failed), over_at_ms: Some(2_000), ..RUNS };
    const ENDED: Holder = Holder { state: Some(JobState::Succeeded), ..FAILED };
    const DELETED: Holder = Holder { state: None, created_at_ms: None, ..ENDED };

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn decided(on: OnDuplicate, now_ms: i64) -> [EnqueueOutcome; 5] {
        [WAITS, RUNS, FAILED, ENDED, DELETED].map(|holder| on.decide(&holder, now_ms))
    }

    #[test]
    fn a_key_alone_is_held_until_retention_deletes_it() {
        assert_eq!(decided(OnDuplicate::keep(), i64::MAX), [EnqueueOutcome::Kept; 5]);
    }

    #[test]
    fn each_uniqueness_frees_the_key_at_its_time() {
        use EnqueueOutcome::{Created, Kept, Replaced};
        let keep = OnDuplicate::keep();
        assert_eq!(decided(keep.unique(Unique::Live), 0), [Kept, Kept, Created, Created, Created]);
        assert_eq!(decided(keep.unique(Unique::Waiting), 0), [Kept, Created, Created, Created, Created]);
        assert_eq!(decided(keep.unique_for(second(1)), 2_999), [Kept; 5]);
        assert_eq!(decided(keep.unique_for(second(1)), 3_000), [Kept, Kept, Created, Created, Created]);
        assert_eq!(decided(OnDuplicate::replace(), 0), [Replaced, Created, Created, Created, Created]);
        assert_eq!(
            decided(OnDuplicate::replace().unique(Unique::Forever), 0),
            [Replaced, Kept, Kept, Kept, Kept]
        );
    }

    #[test]
    fn a_throttle_counts_from_the_creation() {
        use EnqueueOutcome::{Created, Dropped};
        let throttle = OnDuplicate::throttle(second(2));
        assert_eq!(decided(throttle, 2_999), [Dropped; 5]);
        assert_eq!(decided(throttle, 3_000), [Created, Created, Created, Created, Dropped]);
        assert_eq!(decided(throttle, 4_000), [Created; 5]);
    }

    #[test]
    fn a_debounced_job_moves_up_to_its_longest_delay() {
        let debounce = OnDuplicate::debounce(second(5), second(12));
        assert_eq!(debounce.decide(&WAITS, 0), EnqueueOutcome::Moved);
        let starts = [1_000, 4_000, 9_000, 20_000].map(|now| debounce.debounced_start_ms(1_000, now));
        assert_eq!(starts, [6_000, 9_000, 13_000, 20_000].map(Some));
    }

    #[test]
    fn a_job_that_was_canceled_before_it_started_is_not_replaced() {
        let canceled = Holder { state: Some(JobState::Canceled), over_at_ms: Some(2_000), ..WAITS };
        assert_eq!(OnDuplicate::replace().decide(&canceled, 0), EnqueueOutcome::Created);
        let released = Holder { has_started: true, ..WAITS };
        assert_eq!(
            OnDuplicate::replace().decide(&released, 0),
            EnqueueOutcome::Created,
            "it has started once"
        );
    }

    #[test]
    fn fields_that_do_not_fit_the_action_are_refused() {
        let debounce = OnDuplicate::debounce(second(5), second(60));
        let throttle = OnDuplicate::throttle(second(5));
        for sound in
            [OnDuplicate::keep(), OnDuplicate::replace(), debounce, throttle, debounce.unique(Unique::Live)]
        {
            assert_eq!(sound.check(), Ok(()), "{sound:?}");
        }
        for bad in [
            OnDuplicate { max_delay_ms: None, ..debounce },
            OnDuplicate { delay_ms: Some(60_001), ..debounce },
            OnDuplicate { delay_ms: Some(0), ..debounce },
            OnDuplicate { period_ms: None, ..throttle },
            OnDuplicate { delay_ms: Some(5), ..OnDuplicate::keep() },
            OnDuplicate { period_ms: Some(5), ..OnDuplicate::replace() },
            OnDuplicate { period_ms: Some(u64::MAX), ..throttle },
            throttle.unique(Unique::Live),
            OnDuplicate::keep().unique(Unique::Live).unique_for(second(1)),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn its_document_has_only_the_fields_that_are_given() {
        let document = serde_json::to_string(&OnDuplicate::debounce(second(5), second(60))).unwrap();
        assert_eq!(document, r#"{"action":"debounce","delay_ms":5000,"max_delay_ms":60000}"#);
        let unknown =
            serde_json::from_str::<OnDuplicate>(r#"{"action":"keep","delay":1}"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `delay`"), "{unknown}");
    }
}
