//! Bulk jobs, on both stores.

mod aborts;
mod checks;
mod chunks;
mod crashes;
mod cuts;
mod emits;
mod failures;
mod groups;
mod handlers;
mod horizon;
mod keys;
mod members;
mod operations;
mod outages;
mod parameters;
mod remote;
mod remote_faults;
mod shop;
mod staged;
mod throttles;
mod workers;

milepost_testkit::on_each_home! { crate::bulk::members::Members::on =>
    aborts::at_most_the_chunk_in_hand_commits_after_an_abort,
    aborts::a_run_of_a_schedule_that_ends_before_its_first_chunk_is_listed,
    aborts::a_run_can_be_aborted_wherever_it_waits,
    aborts::a_run_that_is_aborted_and_goes_on_is_told,
    aborts::a_stop_of_one_run_leaves_the_others_alone,
    checks::what_the_database_does_not_take_is_refused_in_its_words,
    checks::no_job_is_enqueued_of_a_kind_that_is_a_bulk_job,
    checks::a_source_that_sorts_for_every_chunk_is_refused,
    chunks::every_target_is_applied_once,
    chunks::a_run_without_targets_ends_well,
    chunks::a_run_that_progresses_waits_no_longer_after_each_lost_worker,
    chunks::targets_that_come_behind_the_last_one_later_are_not_taken,
    chunks::targets_that_go_while_it_runs_do_not_stop_it,
    chunks::the_target_set_is_done_once_each_whatever_chunks_and_bad_rows_there_are,
    emits::each_target_has_its_event_once_in_the_order_of_keys,
    emits::a_target_of_which_no_event_can_be_made_fails_alone,
    emits::events_are_emitted_once_although_workers_die_and_operators_abort,
    emits::a_rehearsal_emits_nothing,
    emits::a_source_that_lacks_a_column_of_the_events_is_refused,
    failures::exactly_the_bad_rows_among_a_hundred_thousand_fail,
    failures::more_failures_than_the_budget_abort_the_run_and_say_why,
    failures::a_run_all_of_whose_targets_are_bad_ends_with_each_of_them,
    failures::failures_are_tried_again_and_again_until_their_cause_is_gone,
    failures::failures_that_many_ask_to_retry_at_once_are_retried_by_one_run,
    failures::failures_that_a_canceled_run_did_not_come_to_can_be_tried_again,
    failures::every_error_about_data_is_found_to_be_its_targets,
    failures::what_no_target_is_to_blame_for_makes_none_a_failure,
    groups::runs_of_a_group_go_one_at_a_time_by_priority_and_then_by_time,
    groups::ten_thousand_small_jobs_flow_while_a_run_works,
    handlers::a_function_has_its_effects_in_the_chunks_own_commit,
    handlers::each_target_has_its_child_job_once,
    handlers::child_jobs_are_made_once_although_a_worker_dies,
    handlers::targets_with_the_same_key_have_no_child_job_and_fail_together,
    handlers::a_chunk_that_is_done_elsewhere_is_handed_out_again_as_it_was,
    handlers::a_target_that_cannot_be_read_fails_alone_and_the_rest_is_handed_out,
    handlers::targets_without_an_effect_do_not_count_as_done,
    handlers::a_repeated_chunk_whose_targets_have_changed_has_another_key,
    handlers::a_run_starts_the_next_one_with_its_end,
    keys::each_sort_of_key_leads_through_all_targets,
    keys::targets_of_one_key_are_never_torn_apart,
    keys::a_composite_key_with_nulls_in_it_is_no_target,
    keys::a_key_that_is_text_of_any_sort_leads_through_all_targets,
    keys::a_source_that_does_not_move_on_is_stopped,
    operations::what_is_asked_is_done_to_each_job_and_stands_in_its_history,
    operations::a_job_that_it_cannot_be_done_to_fails_alone,
    parameters::parameters_of_every_json_type_reach_the_statements,
    parameters::numbers_keep_all_their_digits,
    parameters::what_cannot_run_is_refused_before_any_chunk,
    parameters::a_run_goes_on_only_with_the_definition_it_began_with,
    staged::each_row_of_a_file_is_applied_once,
    staged::a_worker_that_is_killed_in_a_file_loses_and_doubles_no_row,
    staged::each_type_of_column_reaches_the_statements,
    staged::staging_that_is_cut_short_leaves_nothing_that_runs_and_is_removed,
    staged::what_retention_has_removed_is_not_started,
    staged::a_file_whose_key_was_there_before_is_not_kept,
    staged::a_run_over_a_file_without_one_fails_and_says_so,
    staged::rows_that_failed_are_tried_again_from_the_file,
    staged::rows_of_a_file_become_jobs_or_go_elsewhere,
    staged::a_trial_over_a_file_leaves_nothing,
    staged::a_run_over_a_file_is_taken_up_without_waiting_for_anybody,
    throttles::a_throttle_holds_a_run_and_is_named_wherever_one_looks,
    throttles::a_throttle_that_holds_in_the_middle_stops_further_chunks,
    throttles::a_closed_window_puts_a_run_off_until_it_opens,
    throttles::a_rate_that_is_set_counts_from_the_next_chunk_on,
    throttles::settings_that_cannot_be_are_refused,
    throttles::settings_are_removed_again,
    workers::a_worker_that_shuts_down_hands_its_run_back_after_the_current_chunk,
    workers::workers_that_die_and_freeze_again_and_again_do_each_target_once,
    workers::a_worker_whose_run_was_taken_over_can_neither_commit_a_chunk_nor_end_it,
    workers::a_run_that_its_job_has_left_is_fenced_before_anybody_else_takes_it,
}
