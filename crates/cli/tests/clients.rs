//! The clients of other languages, each with its own tests, against a real server.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use support::process::Process;
use support::{Place, on_each_store};

on_each_store! {
    the_client_for_python_passes_its_tests,
    the_client_for_typescript_passes_its_tests,
}

/// A server on the store of a place, and its address.
fn serve(place: &Place) -> (Process, String) {
    let (server, address) = Process::serve(place, &[]);
    (server, format!("http://{address}"))
}

fn the_client_for_python_passes_its_tests(place: Place) {
    let (_server, url) = serve(&place);
    let ran = Command::new("python3")
        .args(["-W", "error", "-m", "unittest", "-v", "tests.test_milepost", "tests.test_ill"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python"))
        .env("MILEPOST_URL", url)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("Ran 23 tests"), "{told}");
}

fn the_client_for_typescript_passes_its_tests(place: Place) {
    let (_server, url) = serve(&place);
    let ran = Command::new("node")
        .args(["--test", "--test-reporter=tap", "dist/test/milepost.test.js", "dist/test/ill.test.js"])
        .current_dir(typescript())
        .env("MILEPOST_URL", url)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && told.contains("# pass 21"),
        "{told}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// The folder of the client for TypeScript as it is built once, with its compiler, outside of the sources.
fn typescript() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/typescript/.");
        std::fs::create_dir_all(&folder).unwrap();
        run(Command::new("cp").args(["-r", sources]).arg(&folder));
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder));
        run(Command::new("npm").args(["run", "build"]).current_dir(&folder));
        folder
    });
    &BUILT
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    let told = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&told));
}
