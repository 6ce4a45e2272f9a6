//! Tests that the commands in the files under `ops/` are valid command lines of this version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Parser;
use milepost::WorkerOptions;
use serde_json::{Value, json};

use crate::args::{Cli, Command, DaemonCommand};
use milepost_server::Limits;

const SERVICE: &str = include_str!("../../../ops/systemd/milepost.service");

/// Returns the services of the compose file that run this command.
fn services() -> Vec<Value> {
    let mut file: Value = serde_saphyr::from_str(include_str!("../../../ops/compose.yaml")).unwrap();
    let services = std::mem::take(file["services"].as_object_mut().unwrap());
    services
        .into_iter()
        .map(|(_, service)| service)
        .filter(|service| service.get("build").is_some())
        .collect()
}

/// Returns the pod templates of the Kubernetes file.
fn pods() -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../ops/kubernetes/milepost.yaml")).unwrap();
    documents.iter().filter_map(|document| document.pointer("/spec/template/spec").cloned()).collect()
}

/// Returns the containers of a pod.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["containers"].as_array().unwrap().iter()
}

/// Returns the command that systemd starts.
fn of_the_service() -> Vec<String> {
    set_by_the_service("ExecStart").split_whitespace().skip(1).map(str::to_owned).collect()
}

fn set_by_the_service(key: &str) -> &'static str {
    let values = SERVICE.lines().filter_map(|line| line.split_once('='));
    values.filter(|(its, _)| *its == key).map(|(_, value)| value).next().unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn parsed(line: &[String]) -> Cli {
    let words = std::iter::once("milepost").chain(line.iter().map(String::as_str));
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

#[test]
fn what_ops_starts_is_a_command_line_of_this_version() {
    let composed = services().into_iter().map(|service| texts(&service["command"]));
    let pods = pods();
    let orchestrated = pods.iter().flat_map(containers).map(|container| texts(&container["args"]));
    let lines: Vec<_> = composed.chain(orchestrated).chain([of_the_service()]).collect();
    assert_eq!(lines.len(), 2 + 4 + 1, "{lines:?}");
    let servers = lines
        .iter()
        .filter(|line| matches!(parsed(line).command, Command::Daemon(DaemonCommand::Serve(_))))
        .count();
    assert_eq!(servers, 1 + 3 + 1, "{lines:?}");
}

#[test]
fn requests_and_runs_get_their_time_before_a_server_is_killed() {
    let needed = Limits::default().request_time.max(WorkerOptions::default().drain).as_secs();
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().unwrap();
    assert!(seconds(set_by_the_service("TimeoutStopSec")) > needed);
    assert_eq!(set_by_the_service("KillMode"), "mixed", "programs of `exec` kinds are ended by their worker");
    for service in services().iter().filter(|service| service.get("ports").is_some()) {
        assert!(seconds(service["stop_grace_period"].as_str().unwrap()) > needed);
    }
    for pod in pods().iter().filter(|pod| pod.get("terminationGracePeriodSeconds").is_some()) {
        let pauses =
            containers(pod).filter_map(|container| container.pointer("/lifecycle/preStop/exec/command"));
        let pause: u64 = pauses.map(|command| seconds(command[1].as_str().unwrap())).sum();
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > needed + pause, "{pod}");
    }
}

#[test]
fn pods_that_serve_are_asked_by_a_name_that_no_configuration_refuses() {
    let pods = pods();
    let serving: Vec<_> =
        pods.iter().flat_map(containers).filter(|container| container.get("ports").is_some()).collect();
    assert_eq!(serving.len(), 3);
    for container in serving {
        for probe in ["livenessProbe", "readinessProbe"] {
            let headers = &container[probe]["httpGet"]["httpHeaders"];
            assert_eq!(headers, &json!([{"name": "Host", "value": "localhost"}]), "{container}");
        }
    }
}
