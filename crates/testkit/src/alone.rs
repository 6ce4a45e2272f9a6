//! A test that runs in a separate process: for what belongs to a whole process, as its memory or its environment.

use std::process::{Command, Output};

/// Set in the process that runs one test alone.
const ALONE: &str = "MILEPOST_TEST_ALONE";

/// Whether this process runs one test alone.
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// A command that runs one test of this binary alone. `module` is the `module_path!()` of the test.
pub fn command(module: &str, test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this binary"));
    // Without the name of the crate, which the names of tests do not have.
    let path = module.split_once("::").map_or(test.to_owned(), |(_, module)| format!("{module}::{test}"));
    command.args([&path, "--exact", "--nocapture"]).env(ALONE, "1");
    command
}

/// Asserts that the command ran one test, which passed.
pub fn assert_passes(command: &mut Command) {
    let Output { status, stdout, stderr } = command.output().expect("this binary can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("1 passed"), "{command:?}: {stdout}{stderr}");
}
