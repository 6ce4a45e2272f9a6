//! Short runs of the command.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use milepost_load::process::program_beside;

/// Runs the command for three seconds.
fn load(scenario: &str, store: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_milepost-load"))
        .args(["--scenario", scenario, "--store", store, "--seconds", "3", "--rate", "20"])
        .args(more)
        .output()
        .unwrap()
}

/// Runs a scenario, which must pass, and returns its page.
fn page_of(scenario: &str, store: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let ran = load(scenario, store, &["--report", file.to_str().unwrap()]);
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.contains("Jobs: 60") && printed.contains("Passed"), "{printed}");
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn mixed_ends_pass_on_sqlite() {
    let page = page_of("mixed", "sqlite");
    assert!(page.contains("Mixed ends on SQLite") && page.contains("60 checked"), "{page}");
}

#[test]
fn creates_with_the_same_key_pass_on_postgres() {
    let page = page_of("same-key", "postgres");
    assert!(
        page.contains("Same key on PostgreSQL") && page.contains("140 checked"),
        "each of 20 keys has seven duplicates: {page}"
    );
}

#[test]
fn a_late_database_passes_on_postgres() {
    assert!(page_of("slow-database", "postgres").contains("Slow database on PostgreSQL"));
}

/// A job of the same kind as those of the load.
const ADDITIONAL: &str = r#"{"failures": 0, "refused": false, "max_attempts": 1, "hold_ms": 1}"#;

#[test]
fn a_job_that_no_client_asked_for_fails_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_beside(Path::new(env!("CARGO_BIN_EXE_milepost-load"))).unwrap();
    let (program, wrapper) = (program.display(), folder.path().join("milepost"));
    let text = format!(
        "#!/bin/sh\n[ \"$1\" != serve ] || {program} enqueue load --payload '{ADDITIONAL}' >&2\nexec {program} \"$@\"\n"
    );
    std::fs::write(&wrapper, text).unwrap();
    std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = load("mixed", "sqlite", &["--program", wrapper.to_str().unwrap()]);
    let printed = String::from_utf8_lossy(&ran.stdout);
    let is_broken = printed.contains("BROKEN The store has exactly one job for each key");
    assert!(ran.status.code() == Some(1) && is_broken, "{printed}{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_scenario_that_a_store_cannot_have_is_refused() {
    let ran = load("slow-database", "sqlite", &[]);
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && words.contains("needs --store postgres"), "{words}");
}
