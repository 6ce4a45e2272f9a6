//! The life of a job: no rule is broken, and each defect is found by its rule.

use std::collections::BTreeSet;

use milepost_models::job::{Defect, JobLife, Rule};
use stateright::{Checker, HasDiscoveries, Model};

/// The least number of states that the check without a defect visits. A smaller number would mean that the model has lost steps.
const STATES_MIN: usize = 500_000;

#[test]
fn no_order_of_calls_crashes_and_lost_answers_breaks_a_rule() {
    let checker = JobLife::new(None).checker().spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    assert!(states >= STATES_MIN, "only {states} states");
}

/// Checks that the defect breaks the rule.
fn breaks(defect: Defect, rule: Rule) {
    let expected = BTreeSet::from([rule.name()]);
    let checker = JobLife::new(Some(defect)).checker().finish_when(HasDiscoveries::AnyOf(expected));
    let checker = checker.spawn_bfs().join();
    checker.assert_any_discovery(rule.name());
}

#[test]
fn an_end_without_a_fence_is_found() {
    breaks(Defect::EndIsNotFenced, Rule::OneEnd);
}

#[test]
fn a_claim_that_keeps_the_token_is_found() {
    breaks(Defect::ClaimKeepsToken, Rule::TokensRise);
}

#[test]
fn a_rescue_of_a_job_that_has_ended_is_found() {
    breaks(Defect::RescueWithoutStateGuard, Rule::EndedStaysEnded);
}

#[test]
fn a_rescue_from_a_live_worker_is_found() {
    breaks(Defect::RescueOfLiveWorker, Rule::LeasesDoNotOverlap);
}

#[test]
fn a_rescue_beyond_the_maximum_of_attempts_is_found() {
    breaks(Defect::RescueIgnoresMaximum, Rule::AttemptsAreLimited);
}

#[test]
fn a_rescue_that_no_rescuer_continues_is_found() {
    breaks(Defect::RescueForgetsMarkedWorkers, Rule::EveryJobCanEnd);
}

#[test]
fn a_repeated_end_that_is_not_recognized_is_found() {
    breaks(Defect::EndRepeatedWithoutKey, Rule::RepeatsAreRecognized);
}

#[test]
fn a_rescue_that_is_mistaken_for_a_report_is_found() {
    breaks(Defect::RescueCountsAsReport, Rule::RepeatsAreRecognized);
}

#[test]
fn a_resume_that_withdraws_a_cancel_is_found() {
    breaks(Defect::ResumeLosesCancel, Rule::CancelIsFinal);
}

#[test]
fn an_abort_that_replaces_a_cancel_is_found() {
    breaks(Defect::AbortReplacesCancel, Rule::CancelIsFinal);
}
