//! Conformance suite for the inbox of consumers.

pub mod gaps;
pub mod letters;
pub mod once;
pub mod order;
pub mod together;
pub mod used_sequences;

use std::collections::BTreeMap;

use milepost_core::event::{Aggregate, Event};
use milepost_core::hash::fnv1a;
use milepost_core::ident::EventId;
use milepost_core::inbox::{Consumer, InvalidInbox, Received};
use milepost_core::port::StoreResult;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Generates a test from every function of the inbox suite. `$fresh` is an async function without parameters that returns a guard and a
/// [`Desk`](milepost_testkit::inbox::Desk) on a fresh, migrated store.
#[macro_export]
macro_rules! inbox_conformance {
    ($fresh:path) => {
        $crate::inbox_conformance! { $fresh:
            once {
                an_event_is_new_to_each_consumer_once
                what_is_rolled_back_was_not_taken_in
                of_many_at_once_one_takes_an_event_in
                who_waits_takes_it_in_when_the_first_rolls_back
                duplicates_are_counted
                an_id_is_forgotten_in_time_and_new_again
                a_consumer_without_a_name_is_refused
            }
            used_sequences {
                another_event_with_a_used_sequence_is_kept_for_operators
                another_event_with_the_sequence_of_one_that_waits_is_kept_for_operators
                an_event_that_is_kept_for_operators_follows_when_the_one_before_it_is_dropped
                an_event_that_is_kept_for_operators_follows_when_the_one_before_it_is_forgotten
                the_letter_of_an_event_that_is_processed_after_all_is_deleted
                an_event_that_was_emitted_after_a_later_one_was_processed_is_another_one
                another_event_with_a_used_sequence_is_noticed_after_a_gap_was_skipped
            }
            order {
                events_are_applied_in_order_and_once
                an_event_that_comes_too_early_waits_for_the_one_before_it
                an_event_that_waits_and_comes_again_is_applied_once
                an_aggregate_begins_with_its_first_event
                a_consumer_may_begin_anywhere
                what_is_rolled_back_neither_moves_on_nor_parks
                consumers_do_not_know_of_one_another
                a_kept_event_comes_back_as_it_came
                a_consumer_that_joins_late_says_where_it_begins
                beginning_later_drops_what_lies_before_and_lets_follow_what_waits
                what_is_no_place_of_an_event_is_refused
                an_event_that_readers_cannot_hold_is_refused
            }
            gaps {
                events_that_waited_too_long_become_dead_letters
                the_missing_event_brings_all_back_in_order
                too_many_that_wait_are_given_up_at_once
                a_consumer_may_go_on_past_a_gap
                events_that_wait_without_a_gap_are_not_given_up
                a_new_gap_waits_for_its_own_time
                gaps_are_given_up_in_portions
                settings_are_kept_and_unusable_ones_refused
            }
            letters {
                dead_letters_are_listed_newest_first
                a_dead_letter_waits_again
                a_dropped_letter_is_gone_and_audited
                what_cannot_wait_again_is_told
                dead_letters_are_forgotten_in_time
                a_worker_counts_the_dead_letters_that_it_forgets
            }
            together {
                whatever_comes_in_whatever_order_has_its_effect_once_and_in_order
                what_dies_between_effect_and_commit_leaves_nothing
                two_that_take_in_the_same_event_at_once_apply_it_once
            }
        }
    };
    ($fresh:path: $($topic:ident { $($test:ident)+ })+) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_guard, desk) = $fresh().await;
                $crate::inbox::$topic::$test(desk).await;
            })+
        })+
    };
}

/// The consumer of most tests.
pub const BILLING: &str = "billing";
/// The event is the next one of its aggregate, and no parked event follows.
pub const APPLY: Received = Received::Apply { more: false };
/// The event is the next one, and a parked event follows.
pub const APPLY_AND_MORE: Received = Received::Apply { more: true };
/// The event is too early.
pub const PARKED: Received = Received::Parked { more: false };

/// Returns an order.
pub fn order(id: &str) -> Aggregate {
    Aggregate::new("order", id)
}

/// Returns an event of an order. Its id is always the same.
pub fn event(order: &str, sequence: i64) -> Event {
    Event {
        id: EventId(Uuid::from_u64_pair(fnv1a(order), sequence.unsigned_abs())),
        aggregate: self::order(order),
        sequence,
        event_type: "order.changed".to_owned(),
        payload: RawValue::from_string("{}".to_owned()).expect("JSON"),
        headers: BTreeMap::new(),
        emitted_at: "2026-03-01T12:00:00Z".parse().expect("a time"),
    }
}

/// Returns the error of a call that the inbox rejects.
pub fn refusal<T: std::fmt::Debug>(answer: StoreResult<T>) -> InvalidInbox {
    match answer {
        Err(milepost_core::error::StoreError::Inbox(invalid)) => invalid,
        other => panic!("not refused by the inbox: {other:?}"),
    }
}

/// Returns the consumer of most tests with default settings.
pub fn billing() -> Consumer {
    Consumer::new(BILLING)
}
