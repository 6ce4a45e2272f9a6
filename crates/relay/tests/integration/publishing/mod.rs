//! Publishers on real stores with a scripted sink.

mod cuts;
mod desk;
mod failures;
mod operations;
mod order;
mod republishing;
mod restored;
mod sharing;
mod work;
mod work_cuts;

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::Database;
use tempfile::TempDir;

async fn on_sqlite() -> (TempDir, Arc<dyn Store>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    (folder, Arc::new(store))
}

async fn on_postgres() -> (Database, Arc<dyn Store>) {
    let (database, store) = Database::with_store().await;
    (database, Arc::new(store))
}

/// Creates a test for each store from each function.
macro_rules! on_both {
    ($($topic:ident { $($test:ident)+ })+) => {
        mod sqlite {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::publishing::on_sqlite().await;
                    crate::publishing::$topic::$test(crate::publishing::desk::Desk::new(store)).await;
                })+
            })+
        }
        mod postgres {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::publishing::on_postgres().await;
                    crate::publishing::$topic::$test(crate::publishing::desk::Desk::new(store)).await;
                })+
            })+
        }
    };
}

on_both! {
    order {
        what_was_emitted_is_published_once_and_in_order
        what_is_emitted_later_is_published_without_waiting_for_a_poll
        a_look_in_vain_leaves_what_is_held
        only_what_a_subscription_wants_is_published
        what_a_subscription_leaves_out_is_counted_with_its_types
        a_subscription_that_begins_now_gets_what_comes
        two_subscriptions_each_have_a_position
        what_was_answered_is_not_published_again_after_a_restart
        pages_of_one_event_are_published_too
        large_payloads_are_read_in_small_pages
        payloads_that_the_database_compresses_count_by_their_text
    }
    failures {
        an_event_that_fails_delays_only_its_aggregate
        what_a_sink_has_no_time_for_is_neither_lost_nor_overtaken_nor_blamed
        a_sink_that_refuses_every_event_uses_up_no_attempts_but_the_first
        an_event_whose_fate_is_unknown_is_published_again_under_its_id
        an_aggregate_whose_attempts_are_spent_waits_for_a_person
        an_event_is_skipped_where_the_policy_says_so
        an_event_becomes_a_dead_letter_where_the_policy_says_so
        no_event_is_sent_before_it_is_stored_that_the_one_before_is_dead
        what_can_never_be_taken_is_a_dead_letter_at_once
        a_sink_that_is_down_parks_nothing
        a_sink_that_refuses_everything_parks_few
        a_publisher_that_starts_during_an_outage_uses_up_no_attempts_of_parked_events
        more_refused_events_than_a_page_has_do_not_stop_the_others
        a_receiver_that_wants_no_more_pauses_the_subscription
        what_is_emitted_for_a_parked_aggregate_waits_behind
    }
    operations {
        a_parked_aggregate_is_shown_with_what_the_sink_said
        a_retry_lets_a_halted_aggregate_go_on
        a_skip_goes_past_the_first_event_and_keeps_it
        an_edited_event_is_published_with_its_new_payload_under_its_id
        an_edit_counts_although_an_attempt_fails_at_that_moment
        an_edit_counts_although_an_attempt_succeeds_at_that_moment
        an_event_that_is_named_is_changed_only_while_it_is_the_first
        what_is_not_parked_or_dead_cannot_be_changed
        a_dead_letter_is_published_again_or_forgotten
        a_changed_filter_leaves_parked_events_and_dead_letters_alone
        a_frozen_publisher_changes_nothing_of_a_subscription_that_was_created_again
        a_subscription_that_is_deleted_while_it_is_published_starts_again
        only_what_every_subscription_has_passed_is_forgotten
        a_paused_subscription_goes_on_when_it_is_resumed
    }
    republishing {
        an_aggregate_is_published_again_from_a_sequence_on
        all_is_published_again_since_a_time
        only_what_a_subscription_wants_is_published_again
        what_is_published_again_is_read_page_by_page
    }
    sharing {
        several_publishers_publish_everything_once_and_in_order
        what_a_silent_publisher_held_is_taken_over
        a_publisher_that_was_taken_for_dead_moves_nothing
        what_was_not_committed_comes_again
        a_position_in_hand_is_written_down_by_the_next_commit
        a_publisher_that_stops_gives_its_slots_back_at_once
        a_publisher_whose_sink_is_down_leaves_its_slots_to_others
        a_publisher_whose_sink_never_answers_leaves_its_slots_to_others
        publishers_whose_sinks_are_all_down_resume_when_these_are_back
    }
    work {
        each_event_starts_one_job_in_the_order_of_its_aggregate
        a_call_of_the_store_that_fails_or_whose_answer_is_lost_neither_loses_nor_doubles_work
        relays_that_die_and_share_start_each_event_once
        only_events_that_meet_the_filter_start_work
        an_event_of_which_no_work_can_be_made_is_a_dead_letter_until_it_is_retried
        a_batch_whose_dag_is_missing_waits_for_it
        a_bad_event_does_not_stop_the_others_of_its_wave
        a_replay_starts_nothing_a_second_time
        the_end_of_a_job_starts_the_next_one
    }
}
