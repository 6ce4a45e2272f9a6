//! Schedules: made, looked at, operated, previewed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Place, on_each_store};

on_each_store! {
    a_schedule_is_made_listed_shown_and_removed,
    an_interval_is_made_and_replaced_only_when_asked_to,
    a_paused_schedule_says_so_and_goes_on,
    run_now_makes_a_job_that_names_its_schedule,
    a_bad_schedule_is_refused_with_a_remedy_and_makes_no_store,
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
    assert!(made.ok().out.contains("schedule nightly is made; next tick "));
    let listed = place.run(&["schedules", "list"]).ok().out;
    for words in ["nightly", "0 3 * * * Europe/Berlin", "mail", "in ", "no worker lives"] {
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
    assert!(one["obstacle"].as_str().unwrap().contains("no worker lives"));

    let shown = place.run(&["schedules", "show", "nightly"]).ok().out;
    for words in
        ["made by operator", "by the clock of Europe/Berlin", "all, up to 7", "priority 2", "the day"]
    {
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
    assert!(listed.contains("paused now") || listed.contains("paused 1 s"), "{listed}");
    assert_eq!(place.run(&["schedules", "resume", "poll"]).ok().out, "schedule poll goes on\n");
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
    assert!(last_at.is_null(), "it was no tick");
}

fn a_bad_schedule_is_refused_with_a_remedy_and_makes_no_store(place: Place) {
    for (args, words) in [
        (
            ["--cron", "0 25 * * *"],
            "the hour field \"25\" of the cron expression is not usable; allowed are 0 to 23",
        ),
        (["--cron", "0 0 30 2 *"], "never fires"),
        (["--cron", "* * * *"], "it takes 5"),
        (["--cron", "@fortnightly"], "known are @hourly"),
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
    assert_eq!(listed.status, 1, "no store was made: {}", listed.out);
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
