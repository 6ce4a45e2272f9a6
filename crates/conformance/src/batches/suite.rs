//! The list of tests of batches.

/// Generates a test from every function of the batch suite. `$fresh` is an async function without parameters that returns a guard and an `Arc<dyn
/// Store>` on a fresh, migrated store.
#[macro_export]
macro_rules! batch_conformance {
    ($fresh:path) => {
        $crate::batch_conformance! { $fresh:
            starts {
                a_start_makes_the_jobs_of_the_first_tasks_and_no_others
                a_key_has_one_batch_and_a_start_is_repeated_safely
                what_cannot_be_started_says_why
                the_same_content_is_the_same_version_and_the_latest_again
                a_definition_that_changes_during_a_run_changes_nothing_in_it
                a_batch_has_the_version_that_it_names
                batches_are_listed_newest_first_in_pages
            }
            ends {
                a_diamond_runs_in_order
                every_rule_does_what_its_table_says
                a_failed_task_holds_the_batch_until_its_job_is_tried_again
                attempts_that_are_tried_again_change_nothing
                a_rescue_of_the_last_attempt_goes_on
                a_hub_with_more_successors_than_a_page_releases_all
                ends_of_a_hub_stand_in_line
                a_batch_has_not_failed_while_ends_stand_in_line
                many_ends_at_once_are_counted_in_a_join
                ends_told_twice_count_once
                tasks_of_a_group_wait_for_one_another
                an_operator_of_jobs_moves_the_batch_too
            }
            skips {
                a_false_condition_skips_what_follows_and_makes_no_job
                a_condition_without_a_value_fails_the_task_until_it_is_rerun
                a_task_that_cleans_up_runs_after_a_skip
            }
            data {
                results_go_along_the_edges
                payloads_come_as_they_were_written
                a_result_over_the_limit_is_refused
                a_result_that_nobody_could_read_is_refused
                numbers_keep_all_their_digits
                an_input_that_nobody_could_read_is_refused
                a_task_that_reads_too_much_fails
                jobs_of_a_batch_are_kept_as_long_as_it
                jobs_of_a_batch_are_of_its_trace
            }
            inner {
                a_list_is_joined_once
                an_empty_list_succeeds_at_once
                items_that_fail_fail_the_task_until_they_are_tried_again
                a_batch_in_a_batch_leaves_the_results_of_its_last_tasks
                a_batch_that_cannot_start_fails_its_task
                batches_do_not_lie_deeper_than_they_may
                a_bulk_job_is_a_task
                a_kind_that_is_a_bulk_job_is_refused_in_dags_and_schedules
                a_stop_reaches_into_inner_batches
                a_cancel_leaves_the_clearing_up_of_inner_batches
                an_inner_batch_that_failed_can_be_stopped_and_go_on
                a_rerun_of_a_task_that_is_a_batch_starts_another_one
            }
            operations {
                an_abort_stops_everything_and_a_resume_goes_on
                a_stopped_batch_makes_no_jobs
                a_batch_whose_tasks_still_run_can_be_aborted_again_with_less_grace
                a_running_batch_can_be_resumed_for_the_sake_of_one_aborted_task
                a_cancel_ends_all_but_what_it_does_not_name
                tasks_canceled_together_are_none_skipped_for_another
                a_running_task_is_asked_to_stop
                a_requested_cancel_of_a_task_outlives_an_abort_and_a_resume
                a_resume_withdraws_the_abort_of_a_running_task
                a_mark_says_how_a_task_ended
                what_cannot_be_done_names_the_task
                what_lists_and_inner_batches_come_to_is_not_marked
                an_operator_who_was_overtaken_is_told
                history_tells_what_happened_to_the_batch
            }
            reruns {
                a_rerun_of_what_failed_goes_on
                a_rerun_from_a_task_on_runs_all_that_follows_again
                a_rerun_of_one_task_leaves_what_follows
                a_job_of_a_batch_is_not_rerun_by_itself
                a_rerun_of_a_hub_takes_back_what_stood_in_line
            }
            inside {
                only_items_that_failed_run_again
                what_failed_runs_again_at_any_depth
                what_failed_runs_again_while_other_items_run
                an_inner_batch_that_was_stopped_goes_on
                a_rerun_within_a_stopped_batch_waits_for_its_resume
                an_inner_batch_that_was_rerun_meanwhile_is_told
                a_task_that_failed_waits_for_the_list_before_it
                what_went_on_from_a_failure_does_not_run_again
                a_list_that_fails_again_at_once_has_failed
                a_list_goes_on_in_another_version_unless_it_is_defined_differently
                a_batch_in_which_nothing_failed_is_not_rerun
                items_end_while_operators_rerun_what_failed
            }
            random_inside {
                random_batches_in_batches_come_to_their_ends
            }
            large {
                a_task_that_reads_much_becomes_what_it_says
                tasks_that_read_the_same_large_results_are_all_evaluated
                tasks_that_read_more_than_a_round_loads_are_all_evaluated
                a_task_that_takes_too_much_fails_alone
                a_list_that_takes_much_keeps_no_other_batch_waiting
            }
            versions {
                a_mended_definition_brings_a_failed_batch_to_its_end
                tasks_keep_what_they_have_although_all_numbers_change
                a_task_that_is_added_runs
                a_task_that_is_gone_is_given_up
                a_task_that_comes_back_has_its_history
                an_input_that_does_not_fit_another_version_changes_nothing
                a_batch_of_which_something_runs_stays_in_its_version
                the_version_that_a_batch_has_is_no_other
                ends_that_stand_in_line_are_counted_in_the_other_version
                jobs_of_tasks_that_are_gone_are_kept_as_long_as_the_batch
                a_task_is_decided_once_when_reruns_and_skips_meet
            }
            versions_inside {
                batches_in_a_batch_stay_with_their_tasks
                a_batch_that_was_given_up_with_its_task_skips_nothing
            }
            random_versions {
                random_batches_go_over_to_random_versions
                random_batches_that_once_failed_go_over_to_random_versions
            }
            ticks {
                a_tick_starts_one_batch_whoever_looks
                jobs_of_a_tick_know_it
                ticks_that_were_missed_start_their_batches_in_order
                a_batch_that_cannot_start_does_not_stop_its_schedule
                a_schedule_of_batches_comes_back_as_it_was_put
                run_now_starts_a_batch_beside_the_ticks
                expressions_know_the_tick_and_its_date
                a_batch_without_a_tick_has_none_in_expressions
                a_batch_that_an_operator_starts_can_have_a_tick
                a_daily_settlement_knows_its_day
                an_input_of_a_schedule_keeps_the_digits_of_its_numbers
                an_input_of_a_schedule_reads_its_tick_and_nothing_else
            }
            changes {
                a_batch_and_its_tasks_are_told
                what_operators_do_to_a_batch_is_told
                an_inner_batch_says_whose_it_is
                batches_of_other_dags_make_no_events
            }
            waits {
                a_signal_ends_a_wait_and_its_payload_is_the_output
                a_signal_before_the_wait_is_kept
                a_signal_with_the_same_id_counts_once
                a_timeout_does_what_the_definition_says
                a_wait_for_a_time_ends_by_itself
                a_stored_signal_precedes_the_timeout
                a_signal_and_a_timeout_at_the_same_time_have_one_winner
                a_wait_can_be_canceled_and_marked
                a_wait_that_is_aborted_continues_with_its_deadline
                a_rerun_waits_for_a_new_signal
                a_wait_in_an_inner_batch_gives_its_output
                a_wait_moves_with_its_task_to_another_version
                a_wait_that_another_version_defines_differently_begins_again
                a_wait_can_become_a_job_in_another_version
                another_version_gives_no_wait_a_signal_that_was_for_another_task_or_choice
                a_view_says_what_is_awaited
                what_cannot_be_signaled_says_why
                a_batch_keeps_a_limited_number_of_signals
            }
            model {
                random_batches_go_as_the_model
            }
        }
    };
    ($fresh:path: $($topic:ident { $($test:ident)+ })+) => {
        $(mod $topic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let (_guard, store) = $fresh().await;
                let batches = $crate::batches::Batches::on(store).await;
                $crate::batches::$topic::$test(batches).await;
            })+
        })+
    };
}
