//! The conformance suite of stores, by topic: a store is correct if it passes [`conformance!`], [`batch_conformance!`], [`event_conformance!`] and
//! [`inbox_conformance!`]. All functions here panic when an expectation fails.

pub mod admin;
pub mod alerts;
pub mod audit;
pub mod batches;
pub mod changes;
pub mod claims;
pub mod doctor;
pub mod duplicates;
pub mod edits;
pub mod event_work;
pub mod events;
pub mod feed;
pub mod fences;
pub mod groups;
pub mod history;
pub mod inbox;
pub mod intake;
pub mod limits;
pub mod lost_answers;
pub mod pruners;
pub mod rates;
pub mod rescue;
pub mod retention;
pub mod rollups;
pub mod runtime;
pub mod schedule_owners;
pub mod schedules;
pub mod search;
pub mod teams;
pub mod testing;
pub mod tokens;
pub mod traces;
pub mod transitions;
pub mod wakes;

pub use milepost_testkit::Scene;

/// Generates a test from every function of the suite. `$fresh` is an async function without parameters that returns a guard and an `Arc<dyn Store>` on
/// a fresh, migrated store; the guard lives as long as the test. Use `poll_only` for a store that gives no notifications of new work.
#[macro_export]
macro_rules! conformance {
    ($fresh:path) => {
        $crate::conformance!($fresh, poll_only);
        mod hints {
            $crate::conformance! { $fresh:
                wakes {
                    a_job_wakes_a_sleeper
                    a_cancel_reaches_the_handler_without_a_heartbeat
                }
                groups {
                    jobs_of_groups_start_when_their_time_comes
                }
                rates {
                    the_rate_of_a_kind_is_kept_by_two_workers
                    the_rate_of_a_group_is_kept_by_two_workers
                    the_rate_of_a_group_is_kept_after_a_time_without_claims
                    workers_wake_when_tokens_come_back
                }
            }
        }
    };
    ($fresh:path, poll_only) => {
        $crate::conformance! { $fresh:
            admin {
                jobs_are_listed_newest_first_in_pages
                jobs_are_filtered_by_state_kind_queue_and_key
                a_job_says_why_it_waits
                queues_are_counted_exactly
                only_living_workers_serve_a_queue
                kinds_are_counted_exactly_and_the_rarest_as_one
                jobs_whose_time_has_come_are_counted_apart
                a_queue_tells_since_when_its_oldest_due_job_has_been_due
                workers_are_listed_with_what_they_hold
                a_retried_dead_letter_gets_its_attempts_again
                a_rerun_goes_on_from_the_last_token
                a_rerun_forgets_how_far_the_job_was
                a_job_resumed_after_its_last_attempt_gets_one_more
                a_run_that_is_aborted_spends_no_attempt
                a_snoozed_job_is_not_claimed_before_its_time
                a_running_job_is_asked_to_stop_and_fenced_off_after_its_grace
                operations_on_a_job_that_does_not_exist_say_so
                a_stop_asked_for_again_comes_no_later
                times_out_of_reach_are_refused
            }
            alerts {
                an_alert_is_one_incident_from_its_first_to_its_last_observation
                of_many_servers_one_claims_a_message
                a_message_whose_sender_died_is_claimed_again_after_the_lease
                a_target_rests_after_a_message
                a_message_that_failed_waits_and_is_shown
                a_silenced_alert_begins_unnoticed
                a_silence_until_the_end_goes_with_its_incident
                incidents_are_deleted_some_time_after_their_end
            }
            audit {
                every_change_by_an_actor_leaves_one_row
                without_an_actor_nothing_is_written
                what_changes_nothing_leaves_no_row
                each_action_on_a_job_leaves_a_row_even_if_its_state_stays
                what_is_refused_leaves_no_row
                a_configuration_leaves_rows_for_what_it_changes
                the_audit_is_read_by_who_what_and_subject_in_pages
                a_change_whose_answer_is_lost_has_its_row
                a_row_lists_no_more_than_a_thousand_jobs
            }
            changes {
                changes_of_a_job_are_its_history_as_events
                changes_of_groups_and_stops_are_told
                changes_of_many_jobs_are_complete_under_several_workers
                kinds_that_nobody_wants_make_no_events
                each_subscription_gets_the_changes_that_it_wants
                changes_are_recorded_as_long_as_somebody_wants_them
                changes_for_nobody_are_refused
                a_refused_call_leaves_no_events
                a_forgotten_job_leaves_its_events_and_no_damage
            }
            claims {
                higher_priorities_go_first
                kinds_of_one_priority_take_turns
                jobs_of_a_kind_go_by_due_time
                kinds_and_queues_that_the_worker_lacks_are_left_alone
                jobs_are_not_claimed_before_their_time
                a_claimed_job_says_for_how_long_it_could_have_been
                a_paused_queue_gives_nothing_until_it_is_resumed
                many_claimers_never_share_a_job
                the_token_rises_with_every_claim
                a_yield_does_not_spend_the_attempt
            }
            doctor {
                a_store_with_jobs_in_every_state_has_no_findings
                a_check_that_the_store_does_not_have_finds_nothing
                a_busy_store_has_no_findings
                a_repair_of_a_sound_store_changes_nothing
            }
            duplicates {
                a_job_that_has_not_started_is_replaced
                a_job_that_has_started_is_followed_by_a_next_one
                a_started_job_is_kept_if_its_key_is_held_longer
                a_debounced_job_moves_later_up_to_its_longest_delay
                a_throttled_key_makes_one_job_in_a_period
                a_key_is_free_when_its_holder_ends_if_the_call_says_so
                a_job_of_a_group_is_replaced_in_its_place
                a_job_in_another_queue_or_group_is_not_replaced
                calls_with_many_jobs_settle_each_key_in_order
                a_call_with_rules_repeated_after_a_lost_answer_changes_nothing
                rules_that_do_not_fit_are_refused
                a_key_that_was_passed_on_goes_with_its_last_job
                of_calls_and_claims_at_the_same_time_each_has_one_outcome
            }
            edits {
                a_job_runs_with_the_payload_of_its_last_edit
                an_edit_changes_the_place_and_the_attempts_of_a_job
                a_job_that_waits_always_has_an_attempt_left
                edits_that_do_not_fit_are_refused
                an_edit_of_a_waiting_job_of_a_group_gives_it_its_slot
            }
            event_work {
                an_event_starts_its_job_once
                each_subscription_starts_its_own_work
                a_refused_work_leaves_nothing_of_its_call
                work_whose_key_exists_counts_as_started
                a_signal_of_an_event_ends_a_wait
                calls_at_the_same_time_start_each_event_once
                a_publisher_that_was_taken_for_dead_starts_nothing
                a_subscription_that_is_created_again_starts_nothing_again
                what_is_recorded_about_an_event_is_pruned_with_it
            }
            fences {
                a_stale_token_changes_nothing_in_any_write
                an_end_told_twice_is_known_to_be_the_same
                an_end_of_another_worker_is_fenced
                a_batch_of_ends_is_answered_one_by_one
                of_two_runs_of_a_job_in_one_batch_of_ends_only_the_newer_one_ends_it
                checkpoints_and_progress_are_kept_for_the_next_attempt
                a_run_that_was_asked_to_stop_does_not_come_back
                a_failure_that_is_reported_after_its_run_was_stopped_is_fenced
                a_requested_cancel_is_final_whatever_is_requested_or_reported_beside_it
            }
            groups {
                a_group_runs_one_job_at_a_time
                a_slot_is_held_through_retries_and_yields
                a_slot_is_handed_on_by_priority_then_due_time
                a_job_whose_time_has_not_come_takes_no_slot
                a_snooze_moves_the_time_at_which_a_job_takes_its_slot
                every_end_hands_the_slot_on
                a_full_group_does_not_spoil_a_batch_of_claims
                a_retried_job_waits_for_its_group
                a_waiter_that_is_canceled_leaves_the_slot_to_its_holder
                eight_workers_never_exceed_the_limit
            }
            feed {
                what_happens_is_told_once_and_in_order
                every_position_goes_on_exactly_there
                what_happens_to_a_batch_is_told
                a_batch_is_told_after_all_that_was_before_it_was_forgotten
                a_position_that_nobody_gave_out_is_refused
                what_came_after_a_position_can_be_left_for_later
                what_began_and_ended_is_counted_once
                how_long_jobs_waited_and_ran_is_told_of_some
            }
            rollups {
                starts_and_ends_are_counted_once_whoever_counts
                counts_are_of_a_queue_and_a_kind
                counts_are_of_the_queues_and_kinds_of_a_scope
                a_rollup_waits_until_it_is_due
                the_numbers_of_many_changes_are_exact
                changes_of_deleted_jobs_are_counted_if_their_history_is_left
            }
            search {
                jobs_are_found_by_what_is_in_their_payload
                jobs_are_found_by_kind_state_queue_key_and_error
                jobs_are_found_in_every_state
                the_last_change_and_the_last_failure_of_many_are_told
                a_job_shows_its_last_failure_in_full
                a_failure_with_a_nul_is_shown_whole
                a_key_finds_all_that_ever_had_it
                a_search_within_a_time_finds_what_is_of_it
                a_search_goes_on_where_it_stopped
            }
            history {
                every_change_has_one_entry_and_folds_to_the_state
                a_part_of_a_history_is_read
                random_lives_fold_to_the_state
            }
            intake {
                a_key_has_at_most_one_job
                a_key_twice_in_one_call_makes_one_job
                of_many_jobs_with_one_key_in_a_call_the_first_is_made
                fifty_callers_with_one_key_make_one_job
                calls_with_the_same_keys_in_opposite_order_both_return
                a_call_repeated_after_a_lost_answer_changes_nothing
                who_holds_a_key_is_told_and_whether_it_was_asked_for_with_the_same
                one_bad_job_refuses_the_whole_call
                payloads_come_back_as_they_were
            }
            limits {
                a_group_has_as_many_holders_as_its_limit
                eight_workers_never_exceed_a_limit_of_three
                a_raised_limit_fills_at_once_and_a_lowered_one_drains
                holders_never_exceed_a_limit_that_changes_under_eight_workers
                every_end_frees_one_of_several_slots
                a_holder_that_dies_frees_its_slot
                all_slots_are_filled_after_a_mass_ending
                a_limit_of_its_own_wins_over_the_class
                a_release_is_refused_when_no_slot_is_free
                a_configuration_removes_only_what_it_named
                an_operators_limit_stays_whatever_a_configuration_says
                limits_that_cannot_be_are_refused
            }
            lost_answers {
                jobs_of_a_claim_whose_answer_was_lost_are_adopted
                an_end_whose_answer_was_lost_is_told_again
                an_end_that_the_store_does_not_take_for_now_is_told_until_it_does
                an_end_whose_words_are_refused_becomes_a_failure_that_says_so
                a_run_that_ends_while_the_store_is_asked_is_not_run_again
                a_claim_answered_late_beside_a_lost_one_is_run_once
                a_worker_that_leaves_hands_back_what_a_lost_answer_brought
            }
            pruners {
                a_pruner_that_dies_between_batches_leaves_whole_jobs
                a_rerun_beside_a_pruner_wins_or_loses_cleanly
                many_pruners_forget_each_job_once
                pruners_that_rest_take_turns
                workers_forget_what_is_over
                workers_forget_events_that_every_subscription_has_gone_past
                retention_under_load_loses_nothing
            }
            rates {
                a_claim_takes_no_more_of_a_kind_than_its_tokens
                a_kind_that_is_let_go_faster_does_not_wait_by_its_old_rate
                a_burst_that_is_lowered_and_raised_again_adds_no_tokens
                a_group_keeps_its_missing_tokens_when_its_rate_changes
                a_kind_without_tokens_holds_up_nobody_else
                a_canceled_start_is_not_refunded
                a_job_that_is_snoozed_keeps_no_token_from_others
                slots_and_rate_hold_together
                a_retry_counts_as_a_start_of_its_group
                an_operators_release_does_not_wait_for_the_rate_but_counts
                a_job_says_that_it_waits_for_a_rate
                a_rate_that_is_removed_lets_everybody_go
            }
            rescue {
                a_dead_workers_jobs_are_taken_back
                a_rescued_job_waits_as_its_own_worker_would_have_let_it
                a_crash_spends_an_attempt_until_none_is_left
                a_lost_worker_is_told_so
                a_living_worker_is_left_alone
                a_dead_workers_stop_requests_are_fulfilled
                what_a_worker_left_behind_when_it_retired_is_taken_back
                many_rescuers_take_each_job_back_once
                what_a_worker_left_behind_that_signed_off_is_taken_back
            }
            retention {
                what_retention_leaves_is_no_damage
                each_period_counts_for_its_own_jobs
                a_period_that_an_operator_sets_replaces_that_of_every_configuration
                what_needs_attention_is_never_forgotten
                a_dead_letter_that_was_retried_is_alive
                a_key_goes_with_its_job_and_can_be_used_again
                a_key_can_outlive_its_job
                a_key_is_not_forgotten_before_its_job
                history_can_go_before_its_job_but_for_the_last_entry
                a_long_history_goes_in_portions
                a_policy_that_cannot_be_kept_is_refused
            }
            runtime {
                an_error_at_shutdown_does_not_spend_the_attempt
                a_panic_is_recorded_and_tried_again
                an_attempt_over_its_time_is_tried_again
                a_handler_whose_time_is_over_is_asked_to_stop_before_it_is_dropped
                a_payload_that_does_not_fit_fails_for_good
                a_final_failure_and_spent_attempts_end_in_the_dead_letter
                a_snoozed_job_comes_back_with_its_attempt
                progress_and_checkpoint_are_seen_while_the_job_runs
                a_handler_that_ignores_a_cancel_is_fenced_off_after_its_grace
                a_checkpoint_of_a_fenced_run_says_so
                a_completion_that_was_not_committed_is_tried_again
                a_worker_that_leaves_hands_long_jobs_back
            }
            traces {
                a_trace_goes_from_a_job_to_its_attempts_and_what_they_make
                a_claim_and_what_is_held_tell_the_trace
                an_event_emitted_again_in_another_trace_is_the_same
            }
            testing {
                a_drain_runs_what_is_ready_and_what_that_makes_ready
                a_drain_runs_all_of_a_group
                a_drain_leaves_retries_that_wait
                a_drain_waits_for_what_runs
                a_drain_that_is_dropped_hands_its_jobs_back
                what_waits_is_found_with_its_payload
                an_attempt_without_a_store_ends_as_one_with_it
            }
            schedule_owners {
                a_schedule_put_again_keeps_what_is_due_unless_it_ticks_otherwise
                a_schedule_is_created_once_and_edited_only_as_it_was_seen
                what_is_not_there_or_not_right_is_said
                a_configuration_owns_its_schedules_and_no_others
                an_operators_schedule_stays_whatever_a_configuration_says
            }
            schedules {
                a_tick_makes_a_job_that_says_which_tick_it_is
                what_was_put_comes_back
                many_tickers_make_one_job_a_tick
                a_tick_decided_on_an_old_version_changes_nothing
                a_tick_that_has_its_job_makes_no_second_one
                a_tick_whose_job_is_refused_changes_nothing
                missed_ticks_go_by_the_policy
                a_paused_schedule_does_not_tick_and_goes_on_from_now
                run_now_leaves_the_ticks_as_they_are
                run_now_that_is_repeated_makes_one_job
                a_schedule_that_ticked_by_a_clock_that_was_ahead_is_moved_back_by_the_next_worker
                a_worker_ticks_and_its_handler_knows_the_tick
            }
            teams {
                the_configuration_of_a_team_removes_nothing_of_another_team
                a_configuration_without_a_team_removes_what_another_one_named
            }
            tokens {
                a_token_is_found_by_its_prefix_with_what_was_said_of_it
                a_token_keeps_the_queues_and_kinds_that_it_is_limited_to
                tokens_are_valid_in_their_time_only
                a_revoked_token_stays_known_and_leaves_its_name
                the_use_of_a_token_is_remembered
                a_session_is_its_tokens_until_it_is_ended
                a_session_ends_with_its_token
                a_session_is_over_when_it_is_idle_or_old
                a_session_goes_on_while_somebody_uses_it_and_not_by_a_page_left_open
                the_id_of_a_session_is_changed_once_and_the_old_one_counts_for_a_moment
                a_session_of_a_person_has_their_name_and_role
                a_sign_in_is_returned_once_and_only_with_its_state
                a_sign_in_that_takes_too_long_is_over
                of_too_many_sign_ins_the_oldest_are_deleted
            }
            transitions {
                every_pair_agrees_with_the_transition_function
            }
        }
    };
    ($fresh:path: $($topic:ident { $($test:ident)+ })+) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_guard, store) = $fresh().await;
                $crate::$topic::$test($crate::Scene::on(store).await).await;
            })+
        })+
    };
}
