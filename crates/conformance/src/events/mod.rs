//! Conformance suite for emitting events.

pub mod ids;
pub mod refusals;
pub mod sequences;
pub mod together;

use std::sync::Arc;

use milepost_core::error::StoreError;
use milepost_core::event::listing::{EventFilter, EventPage, LoggedEvent};
use milepost_core::event::{Aggregate, InvalidEvent, NewEvent};
use milepost_core::port::{Store, StoreResult};
use serde_json::value::RawValue;

/// Generates a test from every function of the event suite. `$fresh` is an async function without parameters that returns a guard and an `Arc<dyn
/// Store>` on a fresh, migrated store.
#[macro_export]
macro_rules! event_conformance {
    ($fresh:path) => {
        $crate::event_conformance! { $fresh:
            sequences {
                events_of_an_aggregate_are_numbered_from_one
                a_call_numbers_its_events_in_order
                concurrent_emitters_leave_no_gap_and_commit_in_order
                a_given_sequence_has_to_follow
                a_gap_is_left_only_where_it_is_allowed
                the_first_event_may_have_any_sequence
                given_and_assigned_sequences_mix
                the_highest_sequence_is_the_last_one
            }
            ids {
                an_event_emitted_again_changes_nothing
                an_event_emitted_again_beside_new_ones_takes_no_number
                the_same_content_written_otherwise_is_the_same
                other_content_under_the_same_id_is_refused
                an_id_twice_in_one_call_is_one_event
                one_event_emitted_by_many_at_once_is_one
                an_id_given_to_two_aggregates_at_once_belongs_to_one
            }
            refusals {
                what_is_wrong_is_said_with_its_place
                the_number_after_the_largest_is_refused
                one_bad_event_refuses_the_whole_call
                what_is_at_the_limits_is_taken
                an_event_comes_back_as_it_was_written
            }
            together {
                calls_with_aggregates_in_opposite_order_never_deadlock
                the_log_is_read_in_pages_both_ways
                the_log_is_read_by_aggregate_and_by_type
                an_empty_call_does_nothing
            }
        }
    };
    ($fresh:path: $($topic:ident { $($test:ident)+ })+) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_guard, store) = $fresh().await;
                $crate::events::$topic::$test($crate::events::Log { store }).await;
            })+
        })+
    };
}

/// Fixture for event tests: a store, and common operations on its log.
#[derive(Clone)]
pub struct Log {
    /// The store.
    pub store: Arc<dyn Store>,
}

/// Returns an event of an order.
pub fn of(order: &str) -> NewEvent {
    with(order, "{}")
}

/// Returns an event of an order with this payload, unchanged.
pub fn with(order: &str, payload: &str) -> NewEvent {
    let event = NewEvent::new(Aggregate::new("order", order), "order.changed", &()).expect("an event");
    NewEvent { payload: RawValue::from_string(payload.to_owned()).expect("JSON"), ..event }
}

/// Returns the error of a rejected event, with the position of the event in the call.
pub fn invalid<T: std::fmt::Debug>(answer: StoreResult<T>) -> (usize, InvalidEvent) {
    match answer {
        Err(StoreError::Event { index, invalid }) => (index, invalid),
        other => panic!("not refused as an event: {other:?}"),
    }
}

impl Log {
    /// Emits an event that must be accepted. Returns its sequence.
    pub async fn emit(&self, event: &NewEvent) -> i64 {
        let emitted = self.store.emit(event).await.expect("emitted");
        assert!(!emitted.duplicate, "{event:?}");
        emitted.sequence
    }

    /// Returns why an event is rejected.
    pub async fn refusal(&self, event: &NewEvent) -> InvalidEvent {
        invalid(self.store.emit(event).await).1
    }

    /// Returns the whole log, oldest first.
    pub async fn all(&self) -> Vec<LoggedEvent> {
        let filter = EventFilter { page: EventPage::After(0), limit: 10_000, ..EventFilter::default() };
        self.store.events(&filter).await.expect("listed")
    }

    /// Returns the sequences of an order, by position in the log.
    pub async fn sequences(&self, order: &str) -> Vec<i64> {
        let of_order = |logged: &LoggedEvent| logged.event.aggregate.id == order;
        self.all()
            .await
            .iter()
            .filter(|logged| of_order(logged))
            .map(|logged| logged.event.sequence)
            .collect()
    }
}
