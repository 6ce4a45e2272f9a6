//! Tests that the server exports the metrics that the dashboard and the alerts use.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::process::Process;
use crate::support::{Place, on_each_store, psql, until};
use serde_json::Value;

on_each_store! {
    everything_that_dashboard_and_alerts_ask_for_is_told,
    a_server_that_runs_no_kind_counts_no_worker,
}

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

/// The names of metrics, each with its labels.
type Numbers = BTreeMap<String, BTreeSet<String>>;

/// Returns the queries of the dashboard, including those of its variables, and of the alerts.
fn questions() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../../ops/grafana/milepost.json")).unwrap();
    let alerts: Value =
        serde_saphyr::from_str(include_str!("../../../../ops/prometheus/alerts.yaml")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let choices = dashboard["templating"]["list"].as_array().unwrap().iter();
    let asked = targets.map(|target| &target["expr"]).chain(choices.map(|choice| &choice["definition"]));
    let rules = alerts["groups"][0]["rules"].as_array().unwrap();
    for rule in rules {
        let runbook = rule["annotations"]["runbook"].as_str().expect("each alert describes the remedy");
        assert!(runbook.len() > 20, "{rule}");
    }
    asked
        .chain(rules.iter().map(|rule| &rule["expr"]))
        .filter_map(|expr| expr.as_str().map(str::to_owned))
        .collect()
}

/// Returns the words of a query: names and labels, without quoted texts.
fn words(question: &str) -> Vec<&str> {
    let unquoted = question.split('"').step_by(2);
    unquoted
        .flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_')))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the metrics that a query uses.
fn names(question: &str) -> impl Iterator<Item = &str> {
    words(question).into_iter().filter(|word| word.starts_with("milepost_"))
}

/// Returns the labels that a query uses: in `by (…)`, `on (…)` and `{…}`, and in the definitions of variables.
fn labels(question: &str) -> BTreeSet<&str> {
    let mut labels = BTreeSet::new();
    for opening in ["by (", "on (", "{"] {
        for part in question.split(opening).skip(1) {
            let inside = part.split([')', '}']).next().unwrap_or_default();
            let matched =
                inside.split(',').map(|label| label.split(['=', '!', '~']).next().unwrap_or_default().trim());
            labels.extend(matched.filter(|label| !label.is_empty()));
        }
    }
    if let Some(choice) = question.strip_prefix("label_values(") {
        labels.extend(choice.trim_end_matches(')').split(", ").nth(1));
    }
    labels
}

/// Returns the response of `/metrics`, requested with additional headers.
fn page(address: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the metrics that a server exports.
fn told(address: &str) -> Numbers {
    let mut numbers = Numbers::new();
    for line in page(address, "").lines().filter(|line| line.starts_with("milepost_")) {
        let name = line.split(['{', ' ']).next().unwrap();
        let of_name = numbers.entry(name.to_owned()).or_default();
        let labels = line.split_once('{').map_or("", |(_, rest)| rest);
        let before = labels.split("=\"").filter_map(|part| part.rsplit([',', '{']).next());
        of_name.extend(before.filter(|label| !label.contains(['"', '}'])).map(str::to_owned));
    }
    numbers
}

/// Returns the metrics and labels that are used but not exported.
fn missing(numbers: &Numbers) -> Vec<String> {
    let mut missing = Vec::new();
    for question in questions() {
        let unknown: Vec<&str> = names(&question).filter(|name| !numbers.contains_key(*name)).collect();
        let known: BTreeSet<&str> = names(&question)
            .filter_map(|name| numbers.get(name))
            .flatten()
            .map(String::as_str)
            .chain(ADDED)
            .collect();
        let strange: Vec<&str> =
            labels(&question).into_iter().filter(|label| !known.contains(label)).collect();
        if !(unknown.is_empty() && strange.is_empty()) {
            missing.push(format!("{question}: these metrics do not exist: {unknown:?} {strange:?}"));
        }
    }
    missing
}

/// Returns the rows of the documented metrics: the names of a row as exported, and its labels.
fn documented() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let page = include_str!("../../../../docs/METRICS.md");
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.starts_with("| `milepost_"));
    let rows = rows.map(|row| row.split('|').map(quoted).collect::<Vec<_>>());
    rows.map(|cells| (cells[1].clone(), cells[2].clone())).collect()
}

/// Returns the name of a histogram for its exported series.
fn family(told: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|part| told.strip_suffix(part)).unwrap_or(told)
}

/// Returns the differences between the documented and the exported metrics.
fn misdocumented(numbers: &Numbers) -> Vec<String> {
    let mut told = Numbers::new();
    for (name, labels) in numbers {
        let labels = labels.iter().filter(|label| !["", "le"].contains(&label.as_str())).cloned();
        told.entry(family(name).to_owned()).or_default().extend(labels);
    }
    let mut listed = Numbers::new();
    for (names, labels) in documented() {
        let labels: BTreeSet<String> = labels.into_iter().map(str::to_owned).collect();
        listed.extend(names.into_iter().map(|name| (name.to_owned(), labels.clone())));
    }
    let differ = |name: &&String| told.get(*name) != listed.get(*name);
    let names: BTreeSet<&String> = told.keys().chain(listed.keys()).filter(differ).collect();
    let words =
        |name| format!("{name}: reported with {:?}, listed with {:?}", told.get(name), listed.get(name));
    names.into_iter().map(words).collect()
}

fn everything_that_dashboard_and_alerts_ask_for_is_told(place: Place) {
    assert!(questions().len() > 40);
    place.write(
        "milepost.toml",
        "[kinds.echo]\nexec = { program = \"cat\" }\n[subscription.all]\njsonl = { path = \"events.jsonl\" }\n",
    );
    place.run(&["enqueue", "echo"]).ok();
    place.run(&["enqueue", "nobody"]).ok();
    place.run(&["inbox", "set", "shop", "--parked-max", "5"]).ok();
    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    let redis = std::env::var("MILEPOST_TEST_REDIS").expect("run `scripts/services run cargo test`");
    let prefix = format!("watched-{}:", place.store.rsplit('/').next().unwrap());
    let (_server, address) = Process::serve(&place, &["--redis", &redis, "--redis-prefix", &prefix]);
    until("all metrics are reported", || {
        let told = told(&address);
        let missing = [missing(&told), misdocumented(&told)].concat();
        if missing.is_empty() { Ok(()) } else { Err(missing.join("\n")) }
    });
}

/// Waits until the metrics contain this line. On a busy machine, a store that responds late is reported as down.
fn until_told(line: &str, page: impl Fn() -> String) {
    until(&format!("{line} is reported"), || {
        let page = page();
        if page.lines().any(|its| its == line) { Ok(()) } else { Err(page) }
    });
}

fn a_server_that_runs_no_kind_counts_no_worker(place: Place) {
    let (_server, address) = Process::serve(&place, &[]);
    let workers = place.run(&["workers", "list", "--json"]).json();
    assert_eq!(workers.as_array().unwrap().len(), 1, "it keeps one for operations on many jobs: {workers}");
    until_told("milepost_workers 0.0", || page(&address, ""));
}

#[test]
fn a_worker_with_no_more_rights_than_it_needs_tells_its_numbers_to_a_viewer() {
    let place = Place::postgres();
    let store = place.store.clone();
    place.run(&["migrate"]).ok();
    psql(&store, include_str!("../../../../ops/postgres/roles.sql"));
    place.write("milepost.toml", "[kinds.echo]\nexec = { program = \"cat\" }\n");
    let token = place.run(&["tokens", "create", "prometheus", "--role", "viewer"]).ok().out;
    let worker = Place { store: format!("{store}?options=-c%20role%3Dmilepost_worker"), ..place };
    let (_server, address) = Process::serve(&worker, &["--only", "work", "--require-tokens"]);
    let refused = page(&address, "");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let shown = format!("Authorization: Bearer {}\r\n", token.trim());
    for number in ["milepost_store_up 1.0", "milepost_workers 1.0", "milepost_worker_claimed_jobs_total 0.0"]
    {
        until_told(number, || page(&address, &shown));
    }
}
