//! Positions in the log: no rule is broken, and each defect is found by its rule.

use std::collections::BTreeSet;

use milepost_models::log::{Defect, Kind, LogPosition, Rule};
use stateright::{Checker, HasDiscoveries, Model};

/// Checks that no rule is broken, and that at least this number of states was visited: fewer would mean that the model has lost steps.
fn keeps_every_rule(model: LogPosition, states_min: usize) {
    let checker = model.checker().spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    assert!(states >= states_min, "only {states} states");
}

/// Checks that the defect breaks the rule.
fn breaks(kind: Kind, defect: Defect, rule: Rule) {
    let expected = BTreeSet::from([rule.name()]);
    let checker = LogPosition::new(kind, Some(defect)).checker().finish_when(HasDiscoveries::AnyOf(expected));
    let checker = checker.spawn_bfs().join();
    checker.assert_any_discovery(rule.name());
}

#[test]
fn no_order_of_commits_and_losses_breaks_a_rule_of_the_relay() {
    let model = LogPosition::new(Kind::Relay, None);
    keeps_every_rule(model.clone(), 100_000);
    // With three events, a window has more than one page. With losses, they would be millions of states.
    keeps_every_rule(LogPosition { events: 3, losses: 0, xid_max: 6, ..model }, 400_000);
}

#[test]
fn no_order_of_commits_and_losses_breaks_a_rule_of_the_stream() {
    keeps_every_rule(LogPosition::new(Kind::Stream, None), 50_000);
}

#[test]
fn a_cursor_of_the_sequence_is_found() {
    breaks(Kind::Relay, Defect::SequenceCursor, Rule::NoEventIsSkipped);
    breaks(Kind::Stream, Defect::SequenceCursor, Rule::NoEventIsPassed);
}

#[test]
fn a_floor_that_was_only_read_before_the_snapshot_is_found() {
    breaks(Kind::Relay, Defect::FloorWithoutOwnTransaction, Rule::NoEventIsSkipped);
}

#[test]
fn a_position_that_is_stored_before_the_acknowledgement_is_found() {
    breaks(Kind::Relay, Defect::PositionBeforeAcknowledge, Rule::NoEventIsPassed);
    breaks(Kind::Relay, Defect::PositionBeforeAcknowledge, Rule::NoEventIsSkipped);
}

#[test]
fn a_position_that_is_kept_across_a_failover_is_found() {
    breaks(Kind::Relay, Defect::PositionKeptAcrossFailover, Rule::NoOldPositionIsUsed);
    breaks(Kind::Stream, Defect::PositionKeptAcrossFailover, Rule::NoOldPositionIsUsed);
}

#[test]
fn ids_that_a_crash_assigns_again_in_one_epoch_are_found() {
    breaks(Kind::Relay, Defect::IdsGivenOutAgain, Rule::NoOldPositionIsUsed);
    breaks(Kind::Stream, Defect::IdsGivenOutAgain, Rule::NoOldPositionIsUsed);
}
