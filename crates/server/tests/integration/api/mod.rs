//! Tests of the API over real HTTP, on real stores.

mod access;
mod alerts;
mod audit;
mod bad_input;
mod batches;
mod bodies;
mod bulk;
mod bulk_files;
mod console;
mod console_batches;
mod console_bulk;
mod console_events;
mod console_jobs;
mod console_kinds;
mod console_limits;
mod console_overview;
mod console_schedules;
mod corpus;
mod described;
mod doctor;
mod dry_runs;
mod events;
mod forms;
mod held;
mod hidden;
mod inbox;
mod job_actions;
mod jobs;
mod kind_limits;
mod limits;
mod markup;
mod numbers;
mod oidc;
mod oidc_attacks;
mod place;
mod protocol;
mod proxied;
mod replication;
mod retention;
mod schedules;
mod sessions;
mod stream;
mod teams;
mod tls;

/// Makes a test for each store from a function.
macro_rules! on_both {
    ($($topic:ident { $($test:ident)+ })+) => {
        mod sqlite {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::api::place::on_sqlite().await;
                    crate::api::$topic::$test(crate::api::place::Place::serve(store).await).await;
                })+
            })+
        }
        mod postgres {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::api::place::on_postgres().await;
                    crate::api::$topic::$test(crate::api::place::Place::serve(store).await).await;
                })+
            })+
        }
    };
}

on_both! {
    audit {
        what_a_request_changes_is_audited
        every_noun_is_changed_in_somebodys_name
        whoever_removes_defines_or_tries_again_says_why
        looking_and_what_is_refused_are_not_audited
        every_job_of_many_single_creates_stands_in_the_audit_once
        the_audit_is_read_in_pages
    }
    jobs {
        a_job_that_is_created_can_be_looked_at
        a_key_that_is_asked_for_again_is_the_same_job
        a_rule_for_duplicates_says_what_happened
        many_clients_that_debounce_a_key_make_one_job
        a_request_is_repeated_under_its_idempotency_key
        a_key_of_jobs_of_which_some_were_refused_is_of_these
        of_two_lists_that_are_created_at_once_under_a_key_one_is_refused_completely
        nothing_is_created_under_a_key_that_other_jobs_have
        many_jobs_are_created_in_the_order_of_the_request
        a_list_goes_on_where_its_page_ended
        what_one_of_many_callers_gives_wrong_is_refused_alone
        each_of_many_is_answered_when_asked_for
        one_that_a_database_cannot_keep_does_not_touch_its_neighbours
        large_jobs_of_many_callers_are_all_created
        attempts_are_told_with_their_ends
        a_long_history_and_its_attempts_have_pages
        jobs_are_found_by_what_is_in_them
    }
    job_actions {
        an_operator_changes_jobs
        an_operator_edits_a_job
        a_queue_is_paused_and_goes_on
        an_operation_on_many_is_previewed_and_becomes_a_bulk_job
    }
    bad_input {
        what_is_wrong_with_a_body_is_told_with_its_place
        nothing_of_a_batch_with_a_fault_is_created
        parameters_that_cannot_be_are_refused
        what_is_not_there_is_not_found
        no_bad_request_is_the_servers_fault
        a_page_of_another_origin_is_refused
    }
    console {
        an_empty_store_has_pages_that_say_what_to_do_next
        the_first_page_is_small_and_loads_nothing_from_elsewhere
        a_job_is_edited_on_its_page
        a_form_does_what_it_says_and_wants_to_know_why
        jobs_are_found_by_what_they_say
        many_jobs_are_shown_and_then_changed_by_a_bulk_job
        a_change_of_more_jobs_than_were_shown_is_shown_again
        what_people_did_is_told_with_before_and_after
        who_only_looks_sees_nothing_that_changes_something
        what_is_not_there_is_a_page_for_people_and_a_problem_for_programs
    }
    console_batches {
        a_batch_is_stopped_goes_on_and_runs_again
        a_wait_is_decided_on_the_page_of_its_batch
        a_batch_is_started_in_the_console_with_its_input
        a_long_history_begins_with_what_happened_last
        a_preview_of_a_rerun_of_many_tasks_is_no_longer_than_people_read
        the_page_of_a_dag_has_a_field_for_each_property_of_its_input
        the_page_of_a_dag_shows_its_tasks_versions_and_batches
    }
    dry_runs {
        a_dry_run_becomes_a_job_of_its_workers_queue
        an_operator_starts_a_dry_run_over_a_file_in_the_console
        the_page_of_a_dry_run_shows_what_it_costs
    }
    alerts {
        alerts_are_listed_and_silenced
        an_alert_is_silenced_in_the_console
    }
    retention {
        a_retention_period_is_set_and_removed
        a_retention_period_is_set_in_the_console
    }
    bulk_files {
        a_file_that_is_sent_again_with_its_idempotency_key_starts_no_second_run
        a_run_is_started_over_the_rows_of_a_file
        a_file_with_a_bad_row_starts_nothing
        an_operator_uploads_a_file_in_the_console
    }
    console_bulk {
        bulk_jobs_are_listed_by_state_and_page_by_page
        the_buttons_of_a_bulk_job_say_what_they_did
        the_speed_of_a_run_is_shown_and_changed_where_the_run_is_shown
        a_run_is_started_in_the_console_with_its_parameters
        the_page_of_a_bulk_job_shows_its_sql_and_its_form_asks_for_the_parameters
    }
    console_kinds {
        a_kind_shows_its_workers_its_limit_and_why_its_jobs_failed
    }
    console_jobs {
        jobs_that_failed_since_a_time_are_found_and_retried
        a_job_is_created_in_the_console_once_under_its_key
        a_form_that_is_submitted_twice_creates_one_job
        all_jobs_that_are_changed_are_counted_before
        of_a_long_history_the_newest_changes_are_drawn
        characters_that_reverse_text_are_replaced_in_pages
    }
    console_overview {
        a_store_in_which_nothing_was_done_tells_what_to_do
        kinds_that_no_worker_of_their_queue_runs_are_told
        a_paused_queue_says_who_paused_it_and_why
        a_queue_without_a_worker_offers_no_pause
        jobs_that_fail_and_are_tried_again_are_reported_if_they_are_many
        tabs_count_jobs_by_state_and_chips_remove_filters
        all_is_well_only_where_nothing_failed_or_rests
        failed_bulk_jobs_are_told_behind_many_that_wait
        a_kind_that_fails_is_slowed_down_and_others_of_its_queue_go_on
        an_operators_limit_is_lifted_and_a_configurations_is_not
        what_runs_for_longest_is_shown_of_many
    }
    console_limits {
        a_limit_is_set_and_changed_by_forms
        a_form_of_a_limit_names_what_is_wrong
        a_limit_of_a_configuration_becomes_an_operators
    }
    console_schedules {
        a_schedule_is_created_edited_and_removed_by_forms
        a_form_of_a_schedule_names_what_is_wrong
        forms_of_two_operators_do_not_overwrite_each_other_unseen
        forms_mean_exactly_the_named_object
        a_schedule_of_batches_needs_an_input_that_fits_its_dag
        a_schedule_of_a_configuration_can_be_edited_but_not_removed
        ticks_are_previewed_before_a_schedule_is_created
    }
    console_events {
        what_is_parked_and_given_up_is_mended_on_its_page
        the_form_that_runs_a_schedule_makes_one_job_if_it_is_submitted_twice
        the_overview_tells_of_parked_aggregates
        all_halted_aggregates_of_a_subscription_are_retried_by_one_button
        long_lists_of_what_is_parked_and_given_up_go_on
    }
    protocol {
        a_job_is_run_by_a_worker_that_speaks_http
        a_claim_waits_until_there_is_a_job
        a_result_that_cannot_be_stored_fails_its_run_alone
        a_failed_run_is_tried_again_until_its_attempts_are_spent
        a_failed_run_waits_for_the_backoff_that_its_worker_states
        a_rescued_job_waits_for_the_backoff_of_its_lost_worker
        a_backoff_that_contradicts_itself_is_refused
        a_heartbeat_tells_what_to_stop
        the_end_of_a_run_hands_its_groups_slot_on
        what_a_worker_holds_can_be_asked_for
        what_a_worker_says_wrong_is_told
        a_worker_serves_no_more_pairs_than_a_claim_can_look_for
        a_job_is_spoken_of_once_in_a_request
        what_workers_that_speak_http_do_is_counted
        of_a_long_failure_the_beginning_is_kept
    }
    events {
        events_are_emitted_and_listed
        events_that_cannot_be_are_refused
        what_is_parked_and_given_up_is_dealt_with
        all_parked_aggregates_of_a_subscription_are_retried
        what_is_parked_and_given_up_is_read_in_pages
        a_subscription_is_paused_and_goes_on
        what_was_published_is_published_again
        replays_that_cannot_be_are_refused
    }
    doctor {
        a_store_is_examined
        what_is_asked_of_the_doctor_wrong_is_told
    }
    hidden {
        the_placeholder_is_never_stored_as_a_payload
        hidden_values_are_in_no_answer_and_the_others_are
        a_schedule_of_hidden_data_keeps_and_uses_the_real_values
        a_search_is_no_way_to_guess_hidden_values
        hidden_values_are_revealed_to_those_who_may_and_say_why
        a_definition_is_no_way_to_copy_hidden_values
        a_button_reveals_hidden_values_on_a_page_of_their_own
    }
    inbox {
        what_cannot_be_said_of_an_inbox_is_refused
    }
    stream {
        a_watcher_is_told_what_happens
        a_watcher_that_comes_back_misses_nothing_and_hears_nothing_twice
        a_restart_of_the_server_loses_nothing
        a_watcher_is_told_of_what_it_wants_only
        a_position_that_cannot_be_gone_on_from_is_told
        a_watcher_of_a_queue_is_told_of_its_jobs_only
        a_watcher_of_a_batch_is_told_of_it_and_of_the_jobs_of_its_tasks
        only_so_many_streams_are_open_for_one_client
        only_so_many_streams_are_open_for_all_clients
        who_does_not_read_is_dropped_told_why_and_goes_on_where_it_was
    }
    schedules {
        a_schedule_is_stored_shown_run_and_removed
        a_schedule_that_is_removed_at_the_same_moment_was_stored
        schedules_are_listed_in_pages
        run_now_that_is_repeated_under_its_key_makes_one_job
        a_schedule_of_a_configuration_is_not_removed
        a_schedule_that_there_is_not_is_not_found
        schedules_that_cannot_be_are_refused
        ticks_are_previewed
    }
    kind_limits {
        a_limit_is_set_shown_and_removed
        limits_that_cannot_be_are_refused
    }
    bulk {
        bulk_jobs_are_started_and_listed
        a_start_of_a_bulk_job_is_repeated_under_its_idempotency_key
        the_list_of_runs_goes_on_with_those_that_are_over
        a_run_is_looked_at_and_steered
        a_run_is_stopped_and_what_failed_is_tried_again
        bulk_jobs_that_cannot_be_are_refused
    }
    batches {
        dags_are_defined_and_have_versions
        a_definition_with_too_many_objects_is_refused
        definitions_that_cannot_be_tell_all_that_is_wrong
        values_in_a_definition_that_no_store_keeps_are_refused
        a_batch_is_started_and_looked_at
        a_start_of_a_batch_is_repeated_under_its_idempotency_key
        a_batch_is_started_for_a_tick
        an_operator_changes_a_batch
        a_batch_is_stopped_and_goes_on
        a_batch_goes_over_to_the_latest_version
        a_rerun_of_what_failed_counts_items
        batches_that_cannot_be_are_refused
        a_batch_waits_for_a_signal
        a_signal_that_no_task_can_use_is_refused
    }
    access {
        every_route_is_open_to_the_roles_that_the_document_names_and_to_nobody_else
        a_role_that_is_changed_is_changed_here_too
        what_is_open_to_nobody_known_is_changed_here_too
        nobody_is_asked_until_there_is_a_token_and_everybody_from_then_on
        a_revoked_token_is_refused_within_a_second
        a_claim_that_waits_ends_with_its_token
        a_stream_ends_with_the_token_of_its_reader
        a_stream_that_nobody_was_asked_for_ends_when_there_is_a_token
        a_server_that_others_reach_stays_closed
        hosts_that_are_not_named_are_refused
        to_ask_for_no_token_opens_no_name_on_the_loopback_address
        every_answer_says_what_a_browser_may_do_with_it
    }
    sessions {
        somebody_signs_in_acts_and_signs_out
        a_form_that_another_page_sends_is_refused
        a_session_ends_with_its_token
        who_signs_out_in_one_tab_ends_the_streams_of_all
        to_listen_is_not_to_use_a_session
        a_stream_goes_on_when_the_id_of_its_session_changes
        the_id_of_a_session_changes_and_the_session_goes_on
        a_page_that_says_what_went_wrong_loses_no_session
        a_form_that_does_not_come_is_not_waited_for
        who_tries_too_often_has_to_wait
        a_page_sends_those_who_are_not_signed_in_to_sign_in
        a_page_that_keeps_itself_new_does_not_keep_the_session
        a_form_of_somebody_who_is_signed_in_no_more_is_answered_with_where_to_sign_in
    }
    oidc {
        somebody_signs_in_with_the_account_of_their_company
        whoever_signs_out_is_led_to_the_provider
        a_key_that_is_new_is_read_and_not_too_often
        people_have_the_role_of_their_groups
        a_session_ends_when_the_configuration_gives_its_role_no_more
        a_provider_that_fails_is_reported_without_its_words
        a_server_with_a_provider_is_closed_without_tokens
    }
    oidc_attacks {
        a_sign_in_is_used_once_and_in_its_browser
        an_id_token_that_is_not_of_this_sign_in_is_refused
        a_provider_that_sends_secrets_elsewhere_is_refused
        nobody_is_sent_to_another_server_after_signing_in
        the_provider_returns_to_the_configured_url
        nobody_begins_too_many_sign_ins
    }
    forms {
        each_page_shows_the_word_of_its_forms_in_another_way
        under_https_what_a_page_says_travels_as_the_session_does
    }
    numbers {
        metrics_tell_of_jobs_and_subscriptions
        metrics_tell_of_jobs_that_are_due_and_not_of_reminders
        the_worker_that_a_server_keeps_for_operators_is_not_counted
        a_store_that_does_not_answer_is_told_before_prometheus_gives_up
        a_store_that_is_away_at_the_start_does_not_end_the_server
        how_many_jobs_wait_is_charted_also_while_nobody_looks
        attempts_of_the_last_hour_are_told_by_minute_queue_and_kind
        a_list_of_a_queue_or_kind_has_its_charts
    }
    described {
        people_can_read_all_that_the_document_says
        every_answer_is_as_the_document_says
        the_document_names_a_role_for_every_operation
        every_change_by_an_operator_can_have_a_reason
        an_operation_without_query_parameters_refuses_a_query
    }
}
