//! The test suites of the clients in other languages, run against a real server.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::process::{Process, output};
use crate::support::{Place, on_each_store};

on_each_store! {
    the_client_for_python_passes_its_tests,
    the_client_for_java_passes_its_tests,
    the_client_for_typescript_passes_its_tests,
    the_client_for_typescript_passes_its_tests_on_the_oldest_node_that_it_supports,
}

/// The lower bound of `engines` in clients/typescript/package.json.
const OLDEST_NODE: &str = "18.17.0";
/// The oldest Node.js that all libraries in clients/typescript/test/libraries support.
const NODE_OF_LIBRARIES: &str = "20.19.0";

/// Starts a server on the store of a place, and returns its address.
fn serve(place: &Place) -> (Process, String) {
    let (server, address) = Process::serve(place, &[]);
    (server, format!("http://{address}"))
}

fn the_client_for_python_passes_its_tests(place: Place) {
    let tests = ["tests.test_milepost", "tests.test_ill", "tests.test_handlers"];
    passes_in_python(Path::new("python3"), &place, &tests, 78);
}

#[test]
fn the_modules_of_the_client_for_python_for_libraries_pass_their_tests() {
    let tests = ["tests.test_sql", "tests.test_django", "tests.test_sqlite"];
    passes_in_python(&python().join("python"), &Place::postgres(), &tests, 104);
}

fn passes_in_python(python: &Path, place: &Place, modules: &[&str], count: usize) {
    let (_server, url) = serve(place);
    let mut tests = Command::new(python);
    tests
        .args(["-W", "error", "-m", "unittest", "-v"])
        .args(modules)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python"))
        .env("MILEPOST_URL", url)
        .env("MILEPOST_PROGRAM", env!("CARGO_BIN_EXE_milepost"))
        .env("MILEPOST_TEST_POSTGRES", &place.store);
    let ran = output(&mut tests);
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains(&format!("Ran {count} tests")), "{told}");
}

/// Returns the folder of the programs of a virtual environment with the libraries that the client for Python supports.
pub(crate) fn python() -> &'static Path {
    static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
        let programs = folder.join("bin");
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let libraries =
            ["django", "sqlalchemy", "pydantic", "psycopg[binary]", "psycopg2-binary", "asyncpg", "greenlet"];
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(programs.join("python")).args(install).args(libraries));
        programs
    });
    &INSTALLED
}

#[test]
fn the_example_of_transactions_in_rust_passes_its_tests() {
    let place = Place::postgres();
    let _server = serve(&place);
    // Not the path of this cargo: it would let rustup choose the compiler by a file of a dependency.
    let mut tests = Command::new("cargo");
    tests
        .args(["test", "--locked", "--quiet"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/transactions"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("transactions"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("MILEPOST_PROGRAM", env!("CARGO_BIN_EXE_milepost"))
        .env("MILEPOST_TEST_POSTGRES", &place.store);
    let ran = output(&mut tests);
    let told = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success() && told.contains("4 passed"), "{told}");
}

/// On SQLite without the tests of the functions in SQL.
fn the_client_for_java_passes_its_tests(place: Place) {
    let (_server, url) = serve(&place);
    let target = tempfile::tempdir().unwrap();
    let mut tests = java_build(target.path());
    tests
        .arg("test")
        .env("MILEPOST_URL", url)
        .env("MILEPOST_PROGRAM", env!("CARGO_BIN_EXE_milepost"))
        .env_remove("MILEPOST_STORE");
    let is_postgres = place.database.is_some();
    if is_postgres {
        tests.env("MILEPOST_STORE", &place.store);
    }
    let ran = output(&mut tests);
    let told = String::from_utf8_lossy(&ran.stdout);
    let passed = format!("[{:>10} tests successful      ]", if is_postgres { 89 } else { 63 });
    assert!(ran.status.success() && told.contains(&passed), "{told}{}", String::from_utf8_lossy(&ran.stderr));
}

/// Returns a command that builds the client for Java in a folder.
fn java_build(target: &Path) -> Command {
    let mut build = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/java/build"));
    build.env("MILEPOST_TARGET", target);
    build
}

/// Builds the client for Java in a folder. Returns a class path with it and PostgreSQL's driver.
pub(crate) fn java_class_path(target: &Path) -> String {
    run(&mut java_build(target));
    format!("{}:/usr/share/java/postgresql.jar", target.join("milepost-java-0.1.0.jar").display())
}

fn the_client_for_typescript_passes_its_tests(place: Place) {
    passes_on(Path::new("node"), &place);
}

fn the_client_for_typescript_passes_its_tests_on_the_oldest_node_that_it_supports(place: Place) {
    let package = include_str!("../../../../clients/typescript/package.json");
    let oldest = OLDEST_NODE.strip_suffix(".0").unwrap();
    assert!(package.contains(&format!(r#""node": ">={oldest}""#)), "{package}");
    passes_on(oldest_node(), &place);
}

/// The package is installed from its file in an empty folder, with the libraries for which it has adapters.
#[test]
fn the_adapters_for_typescript_pass_their_tests_from_the_packed_file() {
    let place = Place::postgres();
    let (_server, url) = serve(&place);
    let programs = node_of_libraries().parent().unwrap().display();
    let mut tests = Command::new(node_of_libraries());
    tests
        .arg("test/packed.mjs")
        .current_dir(build_typescript("typescript-packed"))
        // For npm and npx, which run the first program named node.
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
        .env("MILEPOST_URL", url)
        .env("MILEPOST_STORE", &place.store)
        .env("MILEPOST_BIN", env!("CARGO_BIN_EXE_milepost"));
    let ran = output(&mut tests);
    let printed = String::from_utf8_lossy(&ran.stdout);
    let passed = ran.status.success() && printed.contains("# pass 123\n");
    assert!(passed, "{printed}{}", String::from_utf8_lossy(&ran.stderr));
}

/// Runs each file by itself and not with `--test`, so that the output of one that hangs is printed.
fn passes_on(node: &Path, place: &Place) {
    let (_server, url) = serve(place);
    let passes = |file: &str, tests: usize| {
        let mut run = Command::new(node);
        run.args(["--test-reporter=tap", file]).current_dir(typescript()).env("MILEPOST_URL", &url);
        let ran = output(&mut run);
        let printed = String::from_utf8_lossy(&ran.stdout);
        let passed = ran.status.success() && printed.contains(&format!("# pass {tests}\n"));
        assert!(passed, "{file}: {printed}{}", String::from_utf8_lossy(&ran.stderr));
    };
    std::thread::scope(|threads| {
        threads.spawn(|| passes("dist/test/milepost.test.js", 26));
        passes("dist/test/ill.test.js", 29);
    });
}

/// Returns the oldest Node.js that the client supports.
fn oldest_node() -> &'static Path {
    static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| install_node(OLDEST_NODE));
    &INSTALLED
}

/// Returns the oldest Node.js that all libraries support for which the client has adapters.
pub(crate) fn node_of_libraries() -> &'static Path {
    static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| install_node(NODE_OF_LIBRARIES));
    &INSTALLED
}

/// Installs a version of Node.js from its npm package, and returns the program.
fn install_node(version: &str) -> PathBuf {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node-linux-{machine}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("node-{version}"));
    let node = folder.join("node_modules").join(&package).join("bin/node");
    if !node.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let install = ["install", "--no-save", "--no-audit", "--no-fund", "--prefix"];
        run(Command::new("npm").args(install).arg(&folder).arg(format!("{package}@{version}")));
    }
    node
}

/// Returns a folder with the TypeScript client and its compiler, for the tests of this module.
fn typescript() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| build_typescript("typescript"));
    &BUILT
}

/// Builds the TypeScript client outside the source folder. Tests that can run in several processes at a time need folders with different names, because
/// `npm ci` begins with the removal of all packages.
pub(crate) fn build_typescript(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/typescript/.");
    std::fs::create_dir_all(&folder).unwrap();
    run(Command::new("cp").args(["-r", sources]).arg(&folder));
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder));
    run(Command::new("npm").args(["run", "build"]).current_dir(&folder));
    folder
}

/// Builds the TypeScript client and packs it as a file into a folder.
pub(crate) fn pack_typescript(name: &str, into: &Path) {
    let built = build_typescript(name);
    run(Command::new("npm").args(["pack", "--pack-destination"]).arg(into).current_dir(built));
}

fn run(command: &mut Command) {
    let ran = output(command);
    let told = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&told));
}
