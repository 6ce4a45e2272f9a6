//! Tests that run in a separate process because they depend on process-wide state such as memory or the environment.

use std::process::{Command, Output};

/// Environment variable that is set in a process that runs a single test.
const ALONE: &str = "MILEPOST_TEST_ALONE";

/// Returns whether this process runs a single test.
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Returns a command that runs only one test of this binary. `module` is the `module_path!()` of the test.
pub fn command(module: &str, test: &str) -> Command {
    let mut command =
        Command::new(std::env::current_exe().expect("cannot determine the path of this binary"));
    // Test names do not contain the name of the crate.
    let path = module.split_once("::").map_or(test.to_owned(), |(_, module)| format!("{module}::{test}"));
    command.args([&path, "--exact", "--nocapture"]).env(ALONE, "1");
    command
}

/// Asserts that the command ran one test, which passed.
pub fn assert_passes(command: &mut Command) {
    let Output { status, stdout, stderr } = command.output().expect("cannot start this binary");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("1 passed"), "{command:?}: {stdout}{stderr}");
}
