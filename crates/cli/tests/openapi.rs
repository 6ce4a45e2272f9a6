//! The server does as its OpenAPI document says: Schemathesis makes requests from it, good and bad ones, and looks at every answer.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use support::process::Process;
use support::{Place, on_each_store};

on_each_store! {
    no_request_meets_a_fault_of_the_server_or_an_answer_that_is_not_described,
}

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// No fault of the server, and answers of which status, form, headers and content are described.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

fn no_request_meets_a_fault_of_the_server_or_an_answer_that_is_not_described(place: Place) {
    // Something to be listed; the requests make the rest.
    place.run(&["enqueue", "echo"]).ok();
    place.run(&["enqueue", "echo"]).ok();
    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    place.run(&["inbox", "set", "shop", "--parked-max", "5"]).ok();
    let mut server = Process::spawn(&mut place.command(&["serve", "--listen", "127.0.0.1:0"]));
    let line = server.hear("serving http://");
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let ran = Command::new(python().join("bin/schemathesis"))
        .args(["run", &format!("{url}/openapi.json"), "--checks", CHECKS, "--no-color"])
        // The same requests each time, and no more of them than take two minutes.
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "10"])
        .args(["--generation-deterministic", "--continue-on-failure"])
        // A stream has no end, and a claim may wait for 30 s.
        .args(["--exclude-path", "/v1/stream", "--request-timeout", "60"])
        // What makes no sense is refused, as it should be; that much of it was is no news.
        .args(["--warnings", "off", "--suppress-health-check", "all"])
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
}

/// A Python with Schemathesis, made once, outside of the sources.
fn python() -> &'static Path {
    static MADE: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(SCHEMATHESIS.replace("==", "-"));
        let made = folder.join("made");
        if !made.exists() {
            run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS];
            run(Command::new(folder.join("bin/python3")).args(pip));
            std::fs::write(made, "").unwrap();
        }
        folder
    });
    &MADE
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; install Python 3.10 or newer with venv (python3, python3-venv)")
    });
    let told = [ran.stdout, ran.stderr].concat();
    assert!(
        ran.status.success(),
        "{command:?}: {}\nPython 3.10 or newer with venv and access to a package index is needed (python3, python3-venv)",
        String::from_utf8_lossy(&told)
    );
}
