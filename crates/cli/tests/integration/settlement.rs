//! Test of the settlement example on several worker processes, one of which is killed while a known task runs.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::support::{Place, on_each_store, until_true};
use serde_json::Value;

on_each_store! { a_worker_killed_in_the_middle_of_a_batch_costs_an_attempt_and_doubles_nothing, }

const COUNTRIES: [&str; 12] = ["AD", "AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "PT", "US"];
/// The country at which the worker is killed.
const FATAL: &str = "FR";
const WORKERS: [&str; 3] = ["one", "two", "three"];

/// Runs a program of the example and then writes one line to a log. At the fatal country it does nothing until a worker was killed.
const TOLD: &str = r#"#!/bin/sh
set -eu
. ./json.sh
payload=$(cat)
part=$(field part)
if [ "$part" = out/parts/FATAL.csv ] && [ ! -e killed ]; then
    touch reached
    exec sleep 600
fi
result=$(printf '%s' "$payload" | "$1")
echo "$1 $part" >> effects.log
echo "$result"
"#;

fn a_worker_killed_in_the_middle_of_a_batch_costs_an_attempt_and_doubles_nothing(place: Place) {
    let totals = lay(&place);
    place.run(&["migrate"]).ok();
    let mut workers = Workers::start(&place);
    let started = place.run(&[
        "batch",
        "start",
        "settlement",
        "--json",
        "--input",
        r#"{"file": "cities.csv", "into": "out"}"#,
    ]);
    let batch = started.json()["batch"].as_str().unwrap().to_owned();

    until_true("the program of the fatal country runs", || place.path("reached").exists());
    // Waits until these jobs are acknowledged; otherwise a program whose result was not stored yet would run again.
    let done = || list(&place, &["jobs", "list", "--kind", "country", "--state", "succeeded"]).len();
    until_true("the other countries are done", || done() == COUNTRIES.len() - 1);
    let mut watch = place.command(&["batch", "watch", &batch]).spawn().unwrap();
    let mut told = BufReader::new(watch.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains(": country 11/12, 1 active")), "the progress of the items");
    let (job, holder) = fatal_job(&place);
    workers.kill(&holder);
    place.write("killed", "");
    place.expire_leases(&holder);
    assert!(watch.wait().unwrap().success());

    let died: Vec<Value> = list(&place, &["workers", "list"]);
    let died: Vec<&Value> =
        died.iter().filter(|worker| worker["died"] == true).map(|worker| &worker["name"]).collect();
    assert_eq!(died, [&Value::from(holder)]);
    assert_succeeded_once(&place, &batch, &job);
    assert_eq!(effects(&place), expected_effects(), "the effects of the programs, one line each");
    assert_eq!(reported(&place), totals);
    place.run(&["doctor"]).ok();
}

/// Creates the example with logging programs, and a lease that no running worker loses. Returns the number of places of each country.
fn lay(place: &Place) -> BTreeMap<String, u64> {
    place.copy_settlement();
    place.write("told.sh", TOLD.replace("FATAL", FATAL));
    let mut config = place.read("milepost.toml").replace("[worker]", "[worker]\nlease = \"1m\"");
    for program in ["split", "country", "join", "report", "warn", "clean"] {
        let (plain, told) =
            (format!("\"./{program}.sh\""), format!("\"sh\", args = [\"told.sh\", \"./{program}.sh\"]"));
        assert!(config.contains(&plain), "{config}");
        config = config.replace(&plain, &told);
    }
    place.write("milepost.toml", config);
    let (mut csv, mut totals) = ("id,name,country,lat,lng\n".to_owned(), BTreeMap::new());
    for (number, country) in COUNTRIES.iter().enumerate() {
        for place in 0..=number {
            writeln!(csv, "{number},\"Place {place}, {country}\",{country},{place}.5,{number}.25").unwrap();
            *totals.entry((*country).to_owned()).or_default() += 1;
        }
    }
    place.write("cities.csv", csv);
    totals
}

/// Worker processes by name; they are killed with the test.
struct Workers(BTreeMap<String, Child>);

impl Workers {
    /// Starts the workers, and waits until all are registered.
    fn start(place: &Place) -> Self {
        let spawn = |name: &str| {
            let mut command = place.command(&["work", "--name", name]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            (name.to_owned(), command.spawn().unwrap())
        };
        let workers = Self(WORKERS.map(spawn).into());
        until_true("all workers are registered", || list(place, &["workers", "list"]).len() == WORKERS.len());
        workers
    }

    /// Kills a worker with SIGKILL.
    fn kill(&mut self, name: &str) {
        let mut child = self.0.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in self.0.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn list(place: &Place, command: &[&str]) -> Vec<Value> {
    place.run(&[command, &["--json"]].concat()).json().as_array().unwrap().clone()
}

/// Returns the job of the fatal country, and the name of the worker that runs it.
fn fatal_job(place: &Place) -> (String, String) {
    let running = list(place, &["jobs", "list", "--kind", "country", "--state", "running"]);
    assert_eq!(running.len(), 1, "{running:#?}");
    let job = place.job(running[0]["id"].as_str().unwrap());
    assert_eq!(job["payload"]["country"], FATAL);
    let workers = list(place, &["workers", "list"]);
    let holder = workers.iter().find(|worker| worker["id"] == job["worker"]).unwrap();
    (job["id"].as_str().unwrap().to_owned(), holder["name"].as_str().unwrap().to_owned())
}

/// Asserts that the batch and the inner batch of countries are done, that each task succeeded once, and that the fatal one had two
/// attempts.
fn assert_succeeded_once(place: &Place, batch: &str, fatal: &str) {
    let outer = show(place, batch);
    assert_eq!(outer["state"], "done");
    let outer = outer["tasks"].as_array().unwrap();
    let inner = outer.iter().find_map(|task| task["batch"].as_str()).unwrap();
    let inner = show(place, inner);
    assert_eq!(
        (&inner["state"], inner["tasks"].as_array().unwrap().len()),
        (&"done".into(), COUNTRIES.len())
    );
    let jobs: Vec<&str> = outer
        .iter()
        .chain(inner["tasks"].as_array().unwrap())
        .filter_map(|task| task["job"].as_str())
        .collect();
    assert_eq!(jobs.len(), 4 + COUNTRIES.len(), "no job warns");
    for job in jobs {
        let history = place.job(job)["history"].as_array().unwrap().clone();
        let count = |key: &str, value: &str| history.iter().filter(|entry| entry[key] == value).count();
        assert_eq!(count("verb", "succeed"), 1, "{history:#?}");
        assert_eq!(count("verb", "claim"), 1 + count("error_code", "lease_lost"), "{history:#?}");
        if job == fatal {
            assert_eq!(count("error_code", "lease_lost"), 1, "{history:#?}");
        }
    }
}

fn show(place: &Place, batch: &str) -> Value {
    place.run(&["batch", "show", batch, "--all", "--json"]).json()
}

/// Returns what the programs logged, sorted alphabetically.
fn effects(place: &Place) -> Vec<String> {
    let mut effects: Vec<String> = place.read("effects.log").lines().map(str::to_owned).collect();
    effects.sort();
    effects
}

fn expected_effects() -> Vec<String> {
    let countries = COUNTRIES.iter().map(|country| format!("./country.sh out/parts/{country}.csv"));
    let others = ["clean", "join", "report", "split"].map(|program| format!("./{program}.sh "));
    let mut effects: Vec<String> = countries.chain(others).collect();
    effects.sort();
    effects
}

/// Returns the number of places of each country in the totals.
fn reported(place: &Place) -> BTreeMap<String, u64> {
    let totals = place.read("out/totals.csv");
    let lines: Vec<Vec<&str>> = totals.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let reported = lines.iter().map(|line| (line[1].to_owned(), line[0].parse().unwrap()));
    let reported: BTreeMap<String, u64> = reported.collect();
    assert_eq!(reported.len(), lines.len(), "a country has two lines: {totals}");
    reported
}
