//! The clients of other languages, each with its own tests, against a real server.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use support::process::Process;
use support::{Place, on_each_store};

on_each_store! {
    the_client_for_python_passes_its_tests,
}

fn the_client_for_python_passes_its_tests(place: Place) {
    let mut server = Process::spawn(&mut place.command(&["serve", "--listen", "127.0.0.1:0"]));
    let line = server.hear("serving http://");
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let ran = Command::new("python3")
        .args(["-W", "error", "-m", "unittest", "-v", "tests.test_milepost"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python"))
        .env("MILEPOST_URL", url)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("Ran 9 tests"), "{told}");
}
