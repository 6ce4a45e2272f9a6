//! Tests of schedules: creation, listing, operations, preview.

use crate::support;

use crate::support::{Place, on_each_store};

on_each_store! {
    a_schedule_is_made_listed_shown_and_removed,
    an_interval_is_made_and_replaced_only_when_asked_to,
    a_paused_schedule_says_so_and_goes_on,
    run_now_makes_a_job_that_names_its_schedule,
    a_bad_schedule_is_refused_with_a_remedy_and_makes_no_store,
    a_schedule_of_batches_is_made_shown_and_run,
    a_worker_starts_the_batches_of_its_configuration,
    a_backfill_starts_the_batches_that_are_missing_and_none_twice,
    a_backfill_gives_each_batch_its_day,
    a_backfill_enqueues_the_jobs_that_are_missing,
    a_backfill_that_cannot_be_is_refused,
}

fn add(place: &Place, args: &[&str]) -> support::Ran {
    place.run(&[&["schedules", "add"], args].concat())
}

fn a_schedule_is_made_listed_shown_and_removed(place: Place) {
    let zone = "Europe/Berlin";
    let payload = "{\"of\": \"the day\"}";
    let made = add(
        &place,
        &[
            "nightly",
            "--cron",
            "0 3 * * *",
            "--zone",
            zone,
            "--kind",
            "mail",
            "--payload",
            payload,
            "--misfire",
            "all",
            "--misfire-max",
            "7",
        ],
    );
    assert!(made.ok().out.contains("schedule nightly is created; next tick "));
    let listed = place.run(&["schedules", "list"]).ok().out;
    for words in ["nightly", "0 3 * * * Europe/Berlin", "mail", "in ", "no active worker"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let json = place.run(&["schedules", "list", "--json"]).json();
    let one = &json[0];
    assert_eq!(
        (&one["name"], &one["spec"], &one["zone"]),
        (&"nightly".into(), &"0 3 * * *".into(), &zone.into())
    );
    assert_eq!(one["job"]["payload"]["of"], "the day");
    assert_eq!(one["misfire"], serde_json::json!({ "policy": "all", "max": 7 }));
    assert_eq!(one["misfire_grace_ms"], 60_000);
    assert_eq!(one["last_at"], serde_json::Value::Null);
    assert!(one["obstacle"].as_str().unwrap().contains("no active worker"));

    let shown = place.run(&["schedules", "show", "nightly"]).ok().out;
    for words in ["created by operator", "in Europe/Berlin", "all, up to 7", "priority 2", "the day"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let next_at = place.run(&["schedules", "show", "nightly", "--json"]).json()["next_at"].clone();
    let preview = place.run(&["schedules", "preview", "0 3 * * *", "--zone", zone, "--count", "1", "--json"]);
    assert_eq!(preview.json()[0]["at"], next_at);

    assert!(place.run(&["schedules", "remove", "nightly"]).ok().out.contains("is removed"));
    for command in ["remove", "show", "pause", "resume", "run-now"] {
        let ran = place.run(&["schedules", command, "nightly"]);
        let said = ran.err.contains("there is no schedule \"nightly\"") && ran.err.contains("schedules list");
        assert!(ran.status == 1 && said, "{command}: {}", ran.err);
    }
    assert!(place.run(&["schedules", "list"]).ok().err.contains("no schedules"));
}

fn an_interval_is_made_and_replaced_only_when_asked_to(place: Place) {
    add(&place, &["poll", "--every", "10m", "--kind", "mail"]).ok();
    let again = add(&place, &["poll", "--every", "1h 30m", "--kind", "mail"]);
    assert!(again.status == 1 && again.err.contains("--replace"), "{}", again.err);
    let replaced = add(&place, &["poll", "--every", "1h 30m", "--kind", "mail", "--replace"]).ok();
    assert!(replaced.out.contains("is replaced"), "{}", replaced.out);
    assert_eq!(place.run(&["schedules", "list", "--json"]).json()[0]["spec"], "@every 1h 30m");
}

fn a_paused_schedule_says_so_and_goes_on(place: Place) {
    add(&place, &["poll", "--every", "10m", "--kind", "mail"]).ok();
    assert_eq!(place.run(&["schedules", "pause", "poll"]).ok().out, "schedule poll is paused\n");
    assert!(place.run(&["schedules", "pause", "poll"]).ok().out.contains("was paused already"));
    let listed = place.run(&["schedules", "list"]).ok().out;
    let since = listed.split("paused ").nth(1).unwrap_or_else(|| panic!("{listed}"));
    assert!(since.starts_with("now") || since.starts_with(|c: char| c.is_ascii_digit()), "{listed}");
    assert_eq!(place.run(&["schedules", "resume", "poll"]).ok().out, "schedule poll is resumed\n");
    assert!(place.run(&["schedules", "resume", "poll"]).ok().out.contains("was not paused"));
}

fn run_now_makes_a_job_that_names_its_schedule(place: Place) {
    add(&place, &["poll", "--every", "10m", "--kind", "mail", "--priority", "1"]).ok();
    let id =
        place.run(&["schedules", "run-now", "poll", "--json"]).json()["job"].as_str().unwrap().to_owned();
    let job = place.job(&id);
    assert_eq!((&job["kind"], &job["priority"]), (&"mail".into(), &1.into()));
    assert!(job["nominal_at"].is_string(), "{job}");
    let shown = place.run(&["jobs", "show", &id]).ok().out;
    assert!(shown.contains("schedule  poll, tick of "), "{shown}");
    let last_at = place.run(&["schedules", "show", "poll", "--json"]).json()["last_at"].clone();
    assert!(last_at.is_null(), "it was not a tick");
}

fn a_bad_schedule_is_refused_with_a_remedy_and_makes_no_store(place: Place) {
    let place = place.emptied();
    for (args, words) in [
        (
            ["--cron", "0 25 * * *"],
            "the hour field \"25\" of the cron expression is invalid; allowed are 0 to 23",
        ),
        (["--cron", "0 0 30 2 *"], "never fires"),
        (["--cron", "* * * *"], "it must have 5"),
        (["--cron", "@fortnightly"], "expected one of: @hourly"),
        (["--every", "500ms"], "whole number of seconds"),
    ] {
        let ran = add(&place, &[&["bad", "--kind", "mail"], &args[..]].concat());
        assert!(ran.status == 1 && ran.err.contains(words), "{}", ran.err);
    }
    let zone = add(&place, &["bad", "--kind", "mail", "--cron", "@daily", "--zone", "Europe/Berlim"]);
    assert!(zone.status == 1 && zone.err.contains("the nearest names are Europe/Berlin"), "{}", zone.err);
    let payload = add(&place, &["bad", "--kind", "mail", "--cron", "@daily", "--payload", "{"]);
    assert!(payload.status == 1 && payload.err.contains("not JSON"), "{}", payload.err);
    let neither = add(&place, &["bad", "--kind", "mail"]);
    assert!(neither.status == 2 && neither.err.contains("--cron"), "{}", neither.err);
    let listed = place.run(&["schedules", "list"]);
    assert_eq!(listed.status, 1, "no store was created: {}", listed.out);
}

const DAG: &str = r#"
name = "close"
[input_schema]
type = "object"
properties.country = { type = "string" }
[tasks.count]
kind = "mail"
"#;

/// Stores the DAG `close`.
fn define(place: &Place) {
    place.write("close.toml", DAG);
    place.run(&["batch", "define", "close.toml"]).ok();
}

/// Returns the ticks of existing batches, oldest first.
fn ticks(place: &Place) -> Vec<String> {
    let batches = place.run(&["batch", "list", "--json"]).json();
    let mut ticks: Vec<String> = batches
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["nominal_at"].as_str().unwrap().to_owned())
        .collect();
    ticks.sort();
    ticks
}

fn a_schedule_of_batches_is_made_shown_and_run(place: Place) {
    let daily = ["close", "--cron", "@daily", "--dag", "close"];
    let early = add(&place, &daily).ok();
    assert!(early.err.contains("there is no DAG \"close\""), "{}", early.err);
    let run = place.run(&["schedules", "run-now", "close"]);
    assert!(run.status == 1 && run.err.contains("there is no DAG"), "{}", run.err);
    define(&place);
    let unfit = add(&place, &[&daily[..], &["--replace", "--input", r#"{"country": 7}"#]].concat());
    assert!(unfit.status == 1 && unfit.err.contains("the input cannot be used"), "{}", unfit.err);
    let of_jobs = add(&place, &[&daily[..], &["--replace", "--queue", "slow"]].concat());
    assert!(of_jobs.status == 2 && of_jobs.err.contains("--queue"), "{}", of_jobs.err);
    add(&place, &[&daily[..], &["--replace", "--input", r#"{"country": "DE"}"#]].concat()).ok();

    let json = place.run(&["schedules", "show", "close", "--json"]).json();
    assert_eq!(json["batch"], serde_json::json!({ "dag": "close", "input": { "country": "DE" } }));
    let shown = place.run(&["schedules", "show", "close"]).ok().out;
    for words in ["dag       close, the latest version", "input     {", "DE"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(place.run(&["schedules", "list"]).ok().out.contains("batch of close"));

    let started = place.run(&["schedules", "run-now", "close", "--json"]).json();
    let batch = place.run(&["batch", "show", started["batch"].as_str().unwrap(), "--json"]).json();
    let key = batch["key"].as_str().unwrap();
    assert!(key.starts_with("schedule/close/now/") && batch["nominal_at"].is_string(), "{batch}");
}

fn a_worker_starts_the_batches_of_its_configuration(place: Place) {
    place.write("close.toml", DAG);
    let schedules = |dag: &str| {
        format!(
            "[batch.close]\nfile = \"close.toml\"\n[kinds.mail]\nexec = {{ program = \"true\" }}\n\
             [[schedules]]\nname = \"s\"\nevery = \"1s\"\ndag = \"{dag}\"\ninput = {{ country = \"$${{ tick.zone }}\" }}\n"
        )
    };
    place.write("milepost.toml", schedules("close"));
    let until = |what: &str, come: &dyn Fn() -> bool| {
        let mut worker = place.command(&["work"]).stderr(std::process::Stdio::null()).spawn().unwrap();
        let patience = std::time::Instant::now() + milepost_testkit::wait::LIMIT;
        while !come() {
            assert!(std::time::Instant::now() < patience, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        worker.kill().unwrap();
        worker.wait().unwrap();
    };
    let done = || place.run(&["batch", "list", "--state", "done", "--json"]);
    until("two batches are done", &|| {
        let ran = done();
        ran.status == 0 && ran.json().as_array().unwrap().len() >= 2
    });
    let mut found = ticks(&place);
    let all = found.len();
    found.dedup();
    assert_eq!(found.len(), all, "one batch a tick");
    let started = done().json()[0]["id"].as_str().unwrap().to_owned();
    let shown = place.run(&["batch", "show", &started, "--json"]).json();
    assert_eq!(shown["input"], serde_json::json!({ "country": "UTC" }));

    place.write("milepost.toml", schedules("clsoe"));
    until("the schedule shows why it starts nothing", &|| {
        let shown = place.run(&["schedules", "show", "s", "--json"]);
        shown.status == 0 && shown.json()["refused"]["why"].is_string()
    });
    let shown = place.run(&["schedules", "show", "s"]).ok().out;
    assert!(shown.contains("started no batch: there is no DAG \"clsoe\""), "{shown}");
}

/// Three days, of which the second already has its batch.
const THREE_DAYS: [&str; 4] = ["--from", "2026-03-01T00:00:00Z", "--to", "2026-03-03T00:00:00Z"];

fn a_backfill_starts_the_batches_that_are_missing_and_none_twice(place: Place) {
    define(&place);
    add(&place, &["close", "--cron", "@daily", "--dag", "close"]).ok();
    place.run(&["batch", "start", "close", "--key", "schedule/close/2026-03-02T00:00:00Z"]).ok();
    let backfill =
        |args: &[&str]| place.run(&[&["schedules", "backfill", "close"], &THREE_DAYS[..], args].concat());

    let shown = backfill(&["--dry-run"]).ok().err;
    assert!(
        shown.contains("2 of 3 ticks have no batch yet") && shown.contains("2026-03-03T00:00:00Z"),
        "{shown}"
    );
    let unasked = backfill(&[]);
    assert!(unasked.status == 1 && unasked.err.contains("give --yes to skip it"), "{}", unasked.err);
    assert_eq!(
        place.run(&["batch", "list", "--json"]).json().as_array().unwrap().len(),
        1,
        "the preview creates nothing"
    );

    let done = backfill(&["--yes"]).ok().out;
    assert!(done.contains("schedule close: 2 ticks got a batch, 1 had one"), "{done}");
    assert!(done.contains("existed before"), "{done}");
    let json = backfill(&["--yes", "--json"]).json();
    let before: Vec<_> =
        json.as_array().unwrap().iter().map(|tick| tick["before"].as_bool().unwrap()).collect();
    assert_eq!(before, [true; 3], "all of them existed");
    let batches = place.run(&["batch", "list", "--json"]).json();
    let keys: Vec<_> = batches.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    let key = |day: u8| format!("schedule/close/2026-03-0{day}T00:00:00Z");
    assert_eq!(keys, [key(3), key(1), key(2)], "in the order of the ticks, newest first");
    let again = backfill(&[]).ok();
    assert!(again.err.contains("all 3 ticks have their batch"), "{}", again.err);
}

fn a_backfill_gives_each_batch_its_day(place: Place) {
    define(&place);
    let day = |input: &'static str| {
        ["days", "--cron", "30 23 * * *", "--zone", "Europe/Berlin", "--dag", "close", "--input", input]
    };
    let refused = add(&place, &day(r#"{"country": "${ input.day }"}"#));
    assert!(refused.status == 1 && refused.err.contains("can read only `tick`"), "{}", refused.err);
    let unfit = add(&place, &day(r#"{"country": "${ size(tick.date) }"}"#));
    assert!(unfit.status == 1 && unfit.err.contains("the input cannot be used"), "{}", unfit.err);
    add(&place, &day(r#"{"country": "${ tick.date }"}"#)).ok();
    place.run(&[&["schedules", "backfill", "days", "--yes"], &THREE_DAYS[..]].concat()).ok();
    let batches = place.run(&["batch", "list", "--json"]).json();
    let mut days: Vec<_> = batches
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let shown = place.run(&["batch", "show", row["id"].as_str().unwrap(), "--json"]).json();
            (row["nominal_at"].to_string(), shown["input"]["country"].to_string())
        })
        .collect();
    days.sort();
    let expected =
        [("\"2026-03-01T22:30:00Z\"", "\"2026-03-01\""), ("\"2026-03-02T22:30:00Z\"", "\"2026-03-02\"")];
    assert_eq!(days, expected.map(|(tick, day)| (tick.to_owned(), day.to_owned())));
}

fn a_backfill_enqueues_the_jobs_that_are_missing(place: Place) {
    add(&place, &["nightly", "--cron", "@daily", "--kind", "mail"]).ok();
    let backfill =
        || place.run(&[&["schedules", "backfill", "nightly", "--yes"], &THREE_DAYS[..]].concat()).ok();
    assert!(backfill().out.contains("3 ticks got a job, 0 had one"));
    assert!(backfill().err.contains("all 3 ticks have their job"));
    let jobs = place.run(&["jobs", "list", "--json"]).json();
    let mut ticks: Vec<_> =
        jobs.as_array().unwrap().iter().map(|job| job["nominal_at"].as_str().unwrap()).collect();
    ticks.sort_unstable();
    assert_eq!(ticks, ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"]);

    // A tick keeps its job when the schedule makes something else.
    define(&place);
    for now in [&["--kind", "letter"], &["--dag", "close"]] {
        add(&place, &[&["nightly", "--cron", "@daily", "--replace"], &now[..]].concat()).ok();
        assert!(backfill().err.contains("all 3 ticks have their"), "{now:?}");
    }
}

fn a_backfill_that_cannot_be_is_refused(place: Place) {
    add(&place, &["nightly", "--every", "1m", "--kind", "mail"]).ok();
    for (name, from, to, words) in [
        ("nightly", "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z", "is after --to"),
        ("nightly", "2026-03-01T00:00:00Z", "2126-03-01T00:00:00Z", "is in the future"),
        ("nightly", "2026-03-01T00:00:00Z", "2026-03-01T16:40:00Z", "more than 1000 ticks"),
        ("nothing", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "there is no schedule \"nothing\""),
    ] {
        let ran = place.run(&["schedules", "backfill", name, "--from", from, "--to", to, "--yes"]);
        assert!(ran.status == 1 && ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(place.run(&["jobs", "list", "--json"]).json().as_array().unwrap().len(), 0);
}

#[test]
fn a_preview_shows_both_changes_of_the_clocks() {
    let place = Place::without_store();
    let preview = |args: &[&str]| place.run(&[&["schedules", "preview"], args].concat()).ok().out;
    let berlin = ["30 2 * * *", "--zone", "europe/berlin", "--count", "2", "--from"];
    let forward = preview(&[&berlin[..], &["2026-03-28T12:00:00Z"]].concat());
    assert!(forward.contains("Sun 2026-03-29 03:00:00 +02:00"), "{forward}");
    assert!(forward.contains("2026-03-29T01:00:00Z") && forward.contains("were +01:00"), "{forward}");
    let back = preview(&[&berlin[..], &["2026-10-24T12:00:00Z"]].concat());
    assert!(back.contains("2026-10-25T00:30:00Z") && back.contains("were +02:00"), "{back}");
    let every = preview(&["@every 90m", "--count", "2", "--from", "2026-05-06T00:00:00Z"]);
    assert!(every.contains("2026-05-06T01:30:00Z") && every.contains("2026-05-06T03:00:00Z"), "{every}");
    let unknown = place.run(&["schedules", "preview", "@daily", "--zone", "Mars/Olympus"]);
    assert!(unknown.status == 1 && unknown.err.contains("there is no time zone"), "{}", unknown.err);
}
