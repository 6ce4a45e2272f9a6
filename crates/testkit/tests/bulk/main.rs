//! Bulk jobs, on either store.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

mod chunks;
mod crashes;
mod cuts;
mod keys;
mod members;
mod parameters;

milepost_testkit::on_each_home! { crate::members::Members::on =>
    chunks::every_target_is_applied_once,
    chunks::a_run_without_targets_ends_well,
    chunks::targets_that_come_behind_the_last_one_later_are_not_taken,
    chunks::targets_that_go_while_it_runs_do_not_stop_it,
    chunks::the_target_set_is_done_once_each_whatever_chunks_and_bad_rows_there_are,
    keys::each_sort_of_key_leads_through_all_targets,
    keys::targets_of_one_key_are_never_torn_apart,
    keys::a_composite_key_with_nulls_in_it_is_no_target,
    keys::a_key_that_is_text_of_any_sort_leads_through_all_targets,
    keys::a_source_that_does_not_move_on_is_stopped,
    parameters::parameters_of_every_json_type_reach_the_statements,
    parameters::what_cannot_run_is_refused_before_any_chunk,
    parameters::a_run_goes_on_only_with_the_definition_it_began_with,
}
