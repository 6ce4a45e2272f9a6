//! Bulk jobs, on either store.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

mod aborts;
mod chunks;
mod crashes;
mod cuts;
mod failures;
mod groups;
mod keys;
mod members;
mod parameters;

milepost_testkit::on_each_home! { crate::members::Members::on =>
    aborts::at_most_the_chunk_in_hand_commits_after_an_abort,
    aborts::a_run_can_be_aborted_wherever_it_waits,
    aborts::a_stop_of_one_run_leaves_the_others_alone,
    chunks::every_target_is_applied_once,
    chunks::a_run_without_targets_ends_well,
    chunks::targets_that_come_behind_the_last_one_later_are_not_taken,
    chunks::targets_that_go_while_it_runs_do_not_stop_it,
    chunks::the_target_set_is_done_once_each_whatever_chunks_and_bad_rows_there_are,
    failures::exactly_the_bad_rows_among_a_hundred_thousand_fail,
    failures::more_failures_than_the_budget_abort_the_run_and_say_why,
    failures::a_run_all_of_whose_targets_are_bad_ends_with_each_of_them,
    failures::failures_are_tried_again_and_again_until_their_cause_is_gone,
    failures::failures_that_a_canceled_run_did_not_come_to_can_be_tried_again,
    failures::every_error_about_data_is_found_to_be_its_targets,
    failures::what_no_target_is_to_blame_for_makes_none_a_failure,
    groups::runs_of_a_group_go_one_at_a_time_by_priority_and_then_by_time,
    groups::ten_thousand_small_jobs_flow_while_a_run_works,
    keys::each_sort_of_key_leads_through_all_targets,
    keys::targets_of_one_key_are_never_torn_apart,
    keys::a_composite_key_with_nulls_in_it_is_no_target,
    keys::a_key_that_is_text_of_any_sort_leads_through_all_targets,
    keys::a_source_that_does_not_move_on_is_stopped,
    parameters::parameters_of_every_json_type_reach_the_statements,
    parameters::what_cannot_run_is_refused_before_any_chunk,
    parameters::a_run_goes_on_only_with_the_definition_it_began_with,
}
