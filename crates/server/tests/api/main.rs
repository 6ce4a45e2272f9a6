//! The API over real HTTP, on real stores.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

mod audit;
mod bad_input;
mod described;
mod events;
mod jobs;
mod numbers;
mod place;
mod protocol;
mod stream;

/// Makes a test of a function on each store.
macro_rules! on_both {
    ($($topic:ident { $($test:ident)+ })+) => {
        mod sqlite {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::place::on_sqlite().await;
                    crate::$topic::$test(crate::place::Place::serve(store).await).await;
                })+
            })+
        }
        mod postgres {
            $(mod $topic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let (_guard, store) = crate::place::on_postgres().await;
                    crate::$topic::$test(crate::place::Place::serve(store).await).await;
                })+
            })+
        }
    };
}

on_both! {
    audit {
        what_a_request_changes_is_audited
        looking_and_what_is_refused_are_not_audited
        every_job_of_many_single_creates_stands_in_the_audit_once
        the_audit_is_read_in_pages
    }
    jobs {
        a_job_that_is_created_can_be_looked_at
        a_key_that_is_asked_for_again_is_the_same_job
        a_request_is_repeated_under_its_idempotency_key
        many_jobs_are_created_in_the_order_of_the_request
        a_list_goes_on_where_its_page_ended
        what_one_of_many_callers_gives_wrong_is_refused_alone
        each_of_many_is_answered_when_asked_for
        an_operator_changes_jobs
        a_queue_is_paused_and_goes_on
        attempts_are_told_with_their_ends
        jobs_are_found_by_what_is_in_them
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
    protocol {
        a_job_is_run_by_a_worker_that_speaks_http
        a_claim_waits_until_there_is_a_job
        a_failed_run_is_tried_again_until_its_attempts_are_spent
        a_heartbeat_tells_what_to_stop
        the_end_of_a_run_hands_its_groups_slot_on
        what_a_worker_holds_can_be_asked_for
        what_a_worker_says_wrong_is_told
    }
    events {
        events_are_emitted_and_listed
        events_that_cannot_be_are_refused
        what_is_parked_and_given_up_is_dealt_with
        a_subscription_is_paused_and_goes_on
    }
    stream {
        a_watcher_is_told_what_happens
        a_watcher_that_comes_back_misses_nothing_and_hears_nothing_twice
        a_restart_of_the_server_loses_nothing
        a_watcher_is_told_of_what_it_wants_only
        a_position_that_cannot_be_gone_on_from_is_told
        only_so_many_streams_are_open_for_one_client
    }
    numbers {
        metrics_tell_of_jobs_and_subscriptions
    }
    described {
        every_answer_is_as_the_document_says
        the_document_names_a_role_for_every_operation
    }
}
