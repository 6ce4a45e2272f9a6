//! What the files under `ops/` start is a command line of this version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Parser;
use serde_json::Value;

use crate::args::{Cli, Command};

/// Each container of the compose file that runs this command, by its arguments.
fn composed() -> Vec<Vec<String>> {
    let file: Value = serde_saphyr::from_str(include_str!("../../../ops/compose.yaml")).unwrap();
    let services = file["services"].as_object().unwrap();
    let ours = services.values().filter(|service| service.get("build").is_some());
    let told = ours.flat_map(|service| {
        let checked = service["healthcheck"].get("test").map(|test| texts(test)[2..].to_vec());
        std::iter::once(texts(&service["command"])).chain(checked)
    });
    told.collect()
}

/// Each container of the Kubernetes file, by its arguments.
fn orchestrated() -> Vec<Vec<String>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../ops/kubernetes/milepost.yaml")).unwrap();
    let containers = documents
        .iter()
        .filter_map(|document| document.pointer("/spec/template/spec/containers").and_then(Value::as_array));
    containers.flatten().map(|container| texts(&container["args"])).collect()
}

/// What systemd starts.
fn of_the_service() -> Vec<String> {
    let file = include_str!("../../../ops/systemd/milepost.service");
    let start = file.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    start.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_ops_starts_is_a_command_line_of_this_version() {
    let (composed, orchestrated) = (composed(), orchestrated());
    assert_eq!((composed.len(), orchestrated.len()), (3, 3), "{composed:?} {orchestrated:?}");
    let mut servers = 0;
    for line in composed.into_iter().chain(orchestrated).chain([of_the_service()]) {
        let words = std::iter::once("milepost".to_owned()).chain(line.iter().cloned());
        let parsed = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        servers += usize::from(matches!(parsed.command, Command::Serve(_)));
    }
    assert_eq!(servers, 3, "compose, Kubernetes and systemd each start one");
}
