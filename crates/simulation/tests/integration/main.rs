//! Tests of simulated runs, each in a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

use std::path::Path;
use std::process::Command;

use milepost_simulation::plan::{Fault, Plan, Planned};
use milepost_simulation::world::Outcome;
use tempfile::TempDir;

/// Runs a plan in a new process.
fn replay(plan: &Plan) -> Outcome {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("plan.json");
    std::fs::write(&path, serde_json::to_vec(plan).unwrap()).unwrap();
    let ran =
        Command::new(env!("CARGO_BIN_EXE_milepost-simulate")).arg("replay").arg(&path).output().unwrap();
    let words = String::from_utf8_lossy(&ran.stderr);
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {words}"))
}

#[test]
fn the_same_seed_gives_the_same_run_in_two_processes() {
    let plan = Plan::generate(11, 3);
    let (first, second) = (replay(&plan), replay(&plan));
    assert!(first.calls > 1_000 && first.jobs > 10, "{first:?}");
    assert_eq!(first.trace, second.trace);
    assert_ne!(first.trace, replay(&Plan { seed: 12, ..plan }).trace);
}

#[test]
fn a_run_whose_answer_was_lost_is_rescued_after_a_crash_and_nothing_is_lost() {
    let planned = |at_ms, fault| Planned { at_ms, fault };
    let lose = |call: &str| Fault::LoseAnswer { process: 0, call: call.to_owned() };
    let crash =
        Fault::CrashAt { process: 0, call: "finish_many".to_owned(), executed: false, for_ms: 40_000 };
    let faults = vec![planned(30_000, lose("claim")), planned(60_000, crash), planned(90_000, lose("claim"))];
    let outcome = replay(&Plan { seed: 5, length_ms: 180_000, faults });
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert!(outcome.calls_with_fault > 0 && outcome.rescued > 0, "{outcome:?}");
}

#[test]
fn seeds_with_all_kinds_of_faults_keep_every_promise() {
    let failed = TempDir::new().unwrap();
    let ran = run(failed.path(), 40, 5);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// Runs many seeds.
fn run(failed: &Path, seeds: u32, minutes: u32) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_milepost-simulate"))
        .args(["run", "--seeds", &seeds.to_string(), "--minutes", &minutes.to_string(), "--failed"])
        .arg(failed)
        .output()
        .unwrap()
}
