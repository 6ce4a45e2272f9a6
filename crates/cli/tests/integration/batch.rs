//! Tests of batches on the command line: the settlement example as a new user runs it, and operations on batches.

#![cfg(target_os = "linux")]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Ran, on_each_store};
use serde_json::{Value, json};

on_each_store! {
    the_settlement_example_runs_to_its_end,
    a_definition_is_stored_once_and_batches_keep_their_version,
    what_is_not_there_is_told_with_what_is_near,
    an_input_that_does_not_fit_starts_nothing,
    a_failed_task_is_told_and_runs_again,
    a_mended_definition_is_shown_and_runs,
    only_items_that_failed_run_again,
    a_task_can_be_marked_and_a_subtree_canceled,
    a_batch_is_aborted_and_resumed,
    a_batch_is_started_for_a_day,
    a_batch_waits_for_a_signal,
}

/// The time limit of every wait.
const PATIENCE: Duration = milepost_testkit::wait::LIMIT;

/// A worker process, which is killed with the test.
struct Work(Child);

impl Work {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["work"]);
        command.env("MILEPOST_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A chain of programs: `first`, which fails until the file `ready` exists, `second`, and `tidy`, which always runs.
const CHAIN: &str = r#"
name = "chain"
tasks.first = { kind = "first" }
tasks.second = { kind = "second", after = ["first"], payload = { said = "${ tasks.first.output }" } }
tasks.aside = { kind = "second" }
tasks.tidy = { kind = "second", after = ["second"], rule = "always" }
"#;
const CONFIG: &str = r#"
[batch.chain]
file = "chain.toml"
[kinds.first]
exec = { program = "sh", args = ["-c", "test -e ready && echo '{\"rows\": 3}' || { echo 'it is not ready' >&2; exit 65; }"] }
[kinds.second]
exec = { program = "cat" }
"#;

fn chain(place: &Place) {
    place.write("chain.toml", CHAIN);
    place.write("milepost.toml", CONFIG);
    place.run(&["batch", "define", "chain.toml"]).ok();
}

/// Starts a batch and returns its id.
fn start(place: &Place, args: &[&str]) -> String {
    let started = place.run(&[&["batch", "start", "chain", "--json"], args].concat()).json();
    started["batch"].as_str().unwrap().to_owned()
}

fn show(place: &Place, id: &str) -> Value {
    place.run(&["batch", "show", id, "--all", "--json"]).json()
}

/// Returns the state of a task.
fn state<'a>(shown: &'a Value, key: &str) -> &'a str {
    let task = shown["tasks"].as_array().unwrap().iter().find(|task| task["key"] == key);
    task.expect("no such task")["state"].as_str().unwrap()
}

/// Polls a batch until it satisfies a condition.
#[track_caller]
fn until(place: &Place, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let shown = show(place, id);
        if wanted(&shown) {
            return shown;
        }
        assert!(began.elapsed() < PATIENCE, "the expected state was not reached:\n{shown:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn the_settlement_example_runs_to_its_end(place: Place) {
    place.copy_settlement();
    let cities = "id,name,country,lat,lng\n1,Vila,AD,42.53,1.56\n2,\"Washington, D.C.\",US,38.89,-77.03\n\
                  3,El Tarter,AD,42.57,1.65\n4,Nome,US,64.5,-165.4\n";
    place.write("cities.csv", cities);
    let checked = place.run(&["batch", "define", "--check", "settlement.toml"]).ok().out;
    assert!(checked.starts_with("settlement  6 tasks, 8 edges, 5 deep; version "), "{checked}");
    place.run(&["migrate"]).ok();
    let _work = Work::start(&place);
    let input = r#"{"file": "cities.csv", "into": "out", "expected": 3}"#;
    let began = Instant::now();
    while !place.run(&["batch", "list", "--dags"]).out.contains("settlement") {
        assert!(began.elapsed() < PATIENCE, "the worker did not store the DAG");
    }
    let watched =
        place.run(&["batch", "start", "settlement", "--key", "first", "--input", input, "--watch"]).ok();
    assert!(watched.out.contains("done; 6 of 6 tasks ended (100 %)"), "{}", watched.out);
    assert!(place.read("out/report.txt").starts_with("4 places in 2 countries\n"));
    assert!(place.read("out/totals.csv").contains("2,US,51.695,-121.215,\"Nome\""));
    assert!(!place.path("out/parts").exists(), "the last task removes temporary files");
    let shown = place.run(&["batch", "show", "settlement", "--key", "first", "--all", "--json"]).json();
    assert_eq!((state(&shown, "warn"), state(&shown, "report")), ("skipped", "succeeded"));
    assert!(shown["critical_path"]["tasks"].as_array().unwrap().len() > 1, "{shown:#}");
    let table = place.run(&["batch", "show", "settlement", "--key", "first"]).ok().out;
    assert!(table.contains("critical path so far: ") && table.contains("split"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let drawn = place.run(&["batch", "graph", "settlement", "--key", "first"]).ok().out;
    assert!(drawn.contains("│ ✓ split │") && drawn.contains("│ ↷ warn │"), "{drawn}");
}

fn a_definition_is_stored_once_and_batches_keep_their_version(place: Place) {
    place.write("chain.toml", CHAIN);
    let first = place.run(&["batch", "define", "chain.toml"]).ok().out;
    assert!(first.starts_with("chain  version 1 (") && first.ends_with("), new\n"), "{first}");
    let id = start(&place, &["--key", "k"]);
    assert_eq!(start(&place, &["--key", "k"]), id);
    let again = place.run(&["batch", "define", "chain.toml"]).ok().out;
    assert!(again.contains("version 1 (") && again.contains("existed before"), "{again}");
    place.write("chain.toml", format!("{CHAIN}tasks.more = {{ kind = \"k\" }}\n"));
    let versions = place.run(&["batch", "define", "chain.toml", "--json"]).json();
    assert_eq!((&versions[0]["number"], &versions[0]["known"]), (&2.into(), &false.into()));
    assert_eq!(show(&place, &id)["number"], 1);
    let pinned = start(&place, &["--version", "1"]);
    assert_eq!(show(&place, &pinned)["tasks"].as_array().unwrap().len(), 4);
    let listed = place.run(&["batch", "versions", "chain", "--json"]).json();
    assert_eq!((&listed[0]["number"], &listed[0]["latest"]), (&2.into(), &true.into()));
    let listed = place.run(&["batch", "list", "--dag", "chain", "--key", "k", "--json"]).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &id.into()));

    place.write("bad.toml", "name = \"bad\"\n[tasks.a]\nkind = \"k\"\nafter = [\"b\"]\n");
    place.write("good.toml", "name = \"good\"\n[tasks.a]\nkind = \"k\"\n");
    let refused = place.run(&["batch", "define", "good.toml", "bad.toml"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.starts_with("bad.toml:2:8: task \"a\" has the predecessor \"b\""), "{}", refused.err);
    assert!(!place.run(&["batch", "list", "--dags"]).ok().out.contains("good"), "good.toml was stored");
}

#[track_caller]
fn refused(ran: Ran, words: &str) {
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.err.contains(words), "{}\ndoes not contain {words}", ran.err);
}

fn what_is_not_there_is_told_with_what_is_near(place: Place) {
    chain(&place);
    let id = start(&place, &[]);
    refused(place.run(&["batch", "start", "chian"]), "there is no DAG \"chian\"; did you mean chain?");
    refused(place.run(&["batch", "start", "chain", "--version", "7"]), "has no version 7");
    refused(place.run(&["batch", "list", "--dag", "other"]), "there is no DAG \"other\"; there are chain");
    let near = "has no task \"secnd\"; did you mean second?";
    refused(place.run(&["batch", "mark", &id, "secnd", "skip"]), near);
    refused(place.run(&["batch", "rerun", &id, "--task", "secnd", "--yes"]), near);
    refused(place.run(&["batch", "show", "chain"]), "--key");
    refused(
        place.run(&["batch", "show", "chain", "--key", "k"]),
        "no batch of the DAG \"chain\" has the key",
    );
    let none = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
    refused(place.run(&["batch", "watch", none]), "there is no batch 0199c6f0");
    refused(place.run(&["batch", "rerun", &id, "--failed", "--yes"]), "there is nothing to rerun");
}

fn an_input_that_does_not_fit_starts_nothing(place: Place) {
    let schema = "input_schema = { type = \"object\", required = [\"day\"] }\n";
    let definition = CHAIN.replacen("tasks.first", &format!("{schema}tasks.first"), 1);
    place.write("chain.toml", definition);
    place.run(&["batch", "define", "chain.toml"]).ok();
    refused(place.run(&["batch", "start", "chain"]), "missing properties 'day'");
    refused(place.run(&["batch", "start", "chain", "--input", "{"]), "--input is not JSON");
    assert_eq!(place.run(&["batch", "list", "--json"]).json(), Value::Array(Vec::new()));
    let input = "{\"day\": 1}";
    place.run_with_input(&["batch", "start", "chain", "--input-file", "-"], input).ok();
}

fn a_failed_task_is_told_and_runs_again(place: Place) {
    chain(&place);
    let id = start(&place, &[]);
    let _work = Work::start(&place);
    let watched = place.run(&["batch", "watch", &id]);
    assert_eq!(watched.status, 1, "{}", watched.out);
    let shown = show(&place, &id);
    assert_eq!((state(&shown, "first"), state(&shown, "second")), ("failed", "waiting"));
    let table = place.run(&["batch", "show", &id]).ok().out;
    let rerun = format!("milepost batch rerun {id} --failed");
    assert!(table.contains(&rerun) && table.contains("it is not ready"), "{table}");

    let asked = ["batch", "rerun", &id, "--failed"];
    refused(place.run(&asked), "give --yes to skip it");
    assert_eq!(show(&place, &id)["generation"], 1);
    place.write("ready", "");
    let ran = place.run(&["batch", "rerun", &id, "--failed", "--yes", "--note", "ready now"]).ok();
    assert!(ran.err.contains("will run again: first\nnow 1 failed"), "{}", ran.err);
    place.run(&["batch", "watch", &id]).ok();
    let shown = show(&place, &id);
    assert_eq!((state(&shown, "second"), &shown["state"]), ("succeeded", &"done".into()));
    assert!(shown["history"].to_string().contains("ready now"), "{shown:#}");
}

fn only_items_that_failed_run_again(place: Place) {
    let dag =
        "name = \"listed\"\n[tasks.list]\nkind = \"item\"\neach = \"[1, 2, 3]\"\npayload = \"${ item }\"\n";
    place.write("listed.toml", dag);
    let program = "read n; echo $n >> ran; test $n != 2 || test -e ready || exit 65";
    let config = format!(
        "[batch.listed]\nfile = \"listed.toml\"\n[kinds.item]\nexec = {{ program = \"sh\", args = [\"-c\", \"{program}\"] }}\n"
    );
    place.write("milepost.toml", config);
    place.run(&["batch", "define", "listed.toml"]).ok();
    let id = place.run(&["batch", "start", "listed", "--json"]).json()["batch"].as_str().unwrap().to_owned();
    let _work = Work::start(&place);
    assert_eq!(place.run(&["batch", "watch", &id]).status, 1);
    let shown = place.run(&["batch", "show", &id]).ok().out;
    assert!(shown.contains(&format!("milepost batch rerun {id} --failed")), "{shown}");
    let preview = place.run(&["batch", "rerun", &id, "--failed"]).err;
    let words = "1 task in batch ";
    assert!(preview.contains(words) && preview.contains("will run again: list/1\nnow 1 failed"), "{preview}");
    place.write("ready", "");
    let ran = place.run(&["batch", "rerun", &id, "--failed", "--yes", "--json"]).json();
    assert_eq!((&ran["tasks"], &ran["operated"]["changed"]), (&json!(["list/1"]), &1.into()));
    place.run(&["batch", "watch", &id]).ok();
    let mut items: Vec<_> = place.read("ran").lines().map(str::to_owned).collect();
    items.sort();
    assert_eq!(items, ["1", "2", "2", "3"], "each once but the one that failed");
}

fn a_mended_definition_is_shown_and_runs(place: Place) {
    chain(&place);
    let id = start(&place, &[]);
    let work = Work::start(&place);
    assert_eq!(place.run(&["batch", "watch", &id]).status, 1);
    drop(work);
    let mended = CHAIN
        .replace("tasks.first = { kind = \"first\" }", "tasks.first = { kind = \"second\" }")
        .replace("tasks.aside = { kind = \"second\" }", "tasks.about = { kind = \"second\" }")
        .replace("after = [\"second\"], rule", "after = [\"second\", \"about\"], rule");
    place.write("chain.toml", mended);
    place.run(&["batch", "define", "chain.toml"]).ok();
    let asked = ["batch", "rerun", &id, "--failed", "--version", "latest"];
    let shown = place.run(&asked);
    for words in [
        "the batch moves from version 1 (",
        " of chain\n1 task new, to run after their predecessors: about\n",
        "\n1 task removed, and canceled unless they have ended: aside\n",
        "\n1 task of 4 in batch ",
        "will run again: first\nnow 1 failed\n",
    ] {
        assert!(shown.err.contains(words), "{words:?}: {}", shown.err);
    }
    refused(shown, "give --yes to skip it");
    assert_eq!(show(&place, &id)["number"], 1, "nothing was changed");
    let gone = ["batch", "rerun", &id, "--task", "aside", "--version", "latest", "--yes"];
    refused(place.run(&gone), "has no task \"aside\"");
    let ran = place.run(&[&asked[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(
        (&ran["version"], &ran["new"], &ran["gone"]),
        (&2.into(), &json!(["about"]), &json!(["aside"]))
    );
    assert_eq!((&ran["tasks"], &ran["operated"]["generation"]), (&json!(["first"]), &2.into()));
    let _work = Work::start(&place);
    place.run(&["batch", "watch", &id]).ok();
    let shown = show(&place, &id);
    assert_eq!((state(&shown, "about"), &shown["state"]), ("succeeded", &"done".into()));
    assert!(shown["tasks"].as_array().unwrap().iter().all(|task| task["key"] != "aside"), "{shown:#}");
    let table = place.run(&["batch", "show", &id]).ok().out;
    assert!(table.contains("aside") && table.contains("version 2 does not have this task"), "{table}");
    refused(place.run(&asked), "there is nothing to rerun");
}

fn a_task_can_be_marked_and_a_subtree_canceled(place: Place) {
    chain(&place);
    let (marked, canceled) = (start(&place, &[]), start(&place, &[]));
    let said = place.run(&["batch", "mark", &marked, "second", "skip", "--note", "not today"]).ok().out;
    assert_eq!(said, format!("{marked}  task second is skipped\n"));
    assert_eq!(state(&show(&place, &marked), "second"), "skipped");
    refused(place.run(&["batch", "mark", &marked, "second", "skip"]), "cannot be");

    place.run(&["batch", "cancel", &canceled, "--subtree", "first"]).ok();
    let shown = show(&place, &canceled);
    assert_eq!((state(&shown, "first"), state(&shown, "second")), ("canceled", "canceled"));
    assert_eq!(state(&shown, "aside"), "active");
    assert_ne!(state(&shown, "tidy"), "canceled", "cleanup tasks still run");
}

fn a_batch_is_aborted_and_resumed(place: Place) {
    chain(&place);
    place.write("ready", "");
    let id = start(&place, &[]);
    place.run(&["batch", "abort", &id, "--note", "wait"]).ok();
    let shown = show(&place, &id);
    assert_eq!((&shown["state"], &shown["stopped"]), (&"aborted".into(), &true.into()));
    let table = place.run(&["batch", "show", &id]).ok().out;
    assert!(table.contains(&format!("milepost batch resume {id}")), "{table}");
    let _work = Work::start(&place);
    place.run(&["batch", "resume", &id]).ok();
    until(&place, &id, |shown| shown["state"] == "done");
}

fn a_batch_is_started_for_a_day(place: Place) {
    chain(&place);
    let daily = "name = \"daily\"\n[tasks.a]\nkind = \"second\"\npayload = \"${ tick.previous_date }\"\n";
    place.write("daily.toml", daily);
    place.run(&["batch", "define", "daily.toml"]).ok();
    let start = |more: &[&str]| place.run(&[&["batch", "start", "daily"], more].concat());
    let _work = Work::start(&place);
    for (more, at, zone, tick) in [
        (
            &["--nominal-at", "2026-11-22", "--zone", "Europe/Berlin"][..],
            "2026-11-21T23:00:00Z",
            "Europe/Berlin",
            "2026-11-22 in Europe/Berlin",
        ),
        (&["--nominal-at", "2026-11-22"], "2026-11-22T00:00:00Z", "UTC", "2026-11-22 in UTC"),
        (&["--nominal-at", "2026-11-22T03:30:00+02:00"], "2026-11-22T01:30:00Z", "UTC", "2026-11-22 in UTC"),
    ] {
        let id = start(&[more, &["--json"]].concat()).json()["batch"].as_str().unwrap().to_owned();
        place.run(&["batch", "watch", &id]).ok();
        let shown = show(&place, &id);
        assert_eq!((&shown["nominal_at"], &shown["nominal_zone"]), (&at.into(), &zone.into()));
        let job = shown["tasks"][0]["job"].as_str().unwrap();
        assert_eq!(place.run(&["jobs", "show", job, "--json"]).json()["payload"], "2026-11-21");
        let table = place.run(&["batch", "show", &id]).ok().out;
        assert!(table.contains(tick), "{table}");
    }
    refused(start(&["--nominal-at", "2026-11-31"]), "a time looks like");
    refused(start(&["--nominal-at", "2026-11-22", "--zone", "Europe/Berlim"]), "Europe/Berlin");
}

fn a_batch_waits_for_a_signal(place: Place) {
    chain(&place);
    let dag = "name = \"approval\"\n[tasks.ask]\nwait = { signal = \"approved\", timeout = \"3d\", choices = [\"yes\", \"no\"] }\n\
               [tasks.send]\nkind = \"second\"\npayload = \"${ tasks.ask.output.choice }\"\nafter = [\"ask\"]\n";
    place.write("approval.toml", dag);
    place.run(&["batch", "define", "approval.toml"]).ok();
    let id = place.run(&["batch", "start", "approval", "--key", "k", "--json"]).json()["batch"]
        .as_str()
        .unwrap()
        .to_owned();
    let signal = |more: &[&str]| {
        place.run(&[&["batch", "signal", "approval", "approved", "--key", "k"], more].concat())
    };
    refused(signal(&["--payload", "{"]), "--payload is not JSON");
    refused(signal(&[]), "must be one of: yes, no");
    refused(place.run(&["batch", "signal", &id, "aproved"]), "its signals are: approved");
    let _work = Work::start(&place);
    until(&place, &id, |shown| shown["tasks"][0]["wait"]["signal"] == "approved");
    let table = place.run(&["batch", "show", &id]).ok().out;
    assert!(table.contains("ask: the signal approved, since "), "{table}");
    let yes = ["--payload", "{\"choice\": \"yes\"}", "--id", "1", "--note", "checked"];
    let told = signal(&yes).ok().out;
    assert!(told.contains("accepted"), "{told}");
    assert_eq!(signal(&[&yes[..], &["--json"]].concat()).json()["result"], "duplicate");
    until(&place, &id, |shown| shown["state"] == "done");
    assert!(signal(&["--payload", "{\"choice\": \"no\"}"]).ok().out.contains("late"));
}
