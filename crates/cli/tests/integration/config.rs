//! Tests of `milepost config`: creating, checking and describing a configuration.

use crate::support;

use crate::support::Place;

#[test]
fn an_example_is_written_once_and_has_no_fault() {
    let place = Place::without_store();
    let ran = place.run(&["config", "init"]).ok();
    assert!(ran.err.contains("wrote milepost.toml"), "{}", ran.err);
    let checked = place.run(&["config", "check"]).ok().out;
    assert_eq!(checked, "milepost.toml has no fault; it runs echo, mail\n");
    place.write("milepost.toml", "mine = true\n");
    let again = place.run(&["config", "init"]);
    assert_eq!(again.status, 1);
    assert!(
        again.err.contains("milepost.toml exists already") && again.err.contains("--config"),
        "{}",
        again.err
    );
    assert_eq!(place.read("milepost.toml"), "mine = true\n");
}

#[test]
fn faults_are_told_with_file_line_column_and_remedy() {
    let place = Place::without_store();
    place.write("jobs.toml", "[worker]\nconcurency = 4\nlease = \"soon\"\n");
    let ran = place.run(&["config", "check", "--config", "jobs.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""));
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines[0], "error: the configuration has 2 faults");
    assert_eq!(lines[1], "jobs.toml:2:1: unknown key concurency in worker");
    assert_eq!(lines[2], "  did you mean concurrency?");
    assert!(lines[3].starts_with("jobs.toml:3:9: worker.lease = \"soon\" is not a duration"), "{}", lines[3]);

    let ran = place.run(&["config", "check", "--config", "jobs.toml", "--json"]);
    assert_eq!(ran.status, 2);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&answer["ok"], &answer["file"]), (&false.into(), &"jobs.toml".into()));
    assert_eq!((&answer["faults"][0]["line"], &answer["faults"][0]["column"]), (&2.into(), &1.into()));
    assert_eq!(answer["faults"][0]["remedy"], "did you mean concurrency?");
    place.write("jobs.toml", "");
    let good = place.run(&["config", "check", "--config", "jobs.toml", "--json"]).json();
    assert_eq!((&good["ok"], &good["faults"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn a_secret_comes_from_the_environment_and_is_not_told() {
    let place = Place::without_store();
    place.write("milepost.toml", "store = \"mysql://ada:${DB_PASSWORD}@db/app\"\n");
    let missing = place.run(&["config", "check"]);
    assert!(
        missing.err.contains("milepost.toml:1:22: the environment variable DB_PASSWORD is not set"),
        "{}",
        missing.err
    );
    let mut check = place.command(&["config", "check"]);
    let set = support::Ran::from(check.env("DB_PASSWORD", "s3cret").output().unwrap());
    assert!(set.status == 2 && set.err.contains("store, filled in from the environment"), "{}", set.err);
    assert!(!set.err.contains("s3cret"), "{}", set.err);
}

#[test]
fn the_schema_is_one_json_document() {
    let schema = Place::without_store().run(&["config", "schema"]).json();
    assert_eq!(schema["properties"]["worker"]["properties"]["concurrency"]["type"], "integer");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_file_that_is_not_there_is_named_with_what_makes_one() {
    let ran = Place::without_store().run(&["config", "check"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("milepost.toml") && ran.err.contains("config init"), "{}", ran.err);
}

#[test]
fn a_file_without_an_end_is_read_up_to_a_limit() {
    let place = Place::without_store();
    let endless = place.run(&["config", "check", "--config", "/dev/zero"]);
    assert!(
        endless.status == 1 && endless.err.contains("it has more than 16777216 bytes"),
        "{}",
        endless.err
    );
    place.write("milepost.toml", "[serve]\ntls_cert = \"/dev/zero\"\ntls_key = \"/dev/zero\"\n");
    let endless = place.run(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:tls.db"]);
    assert!(
        endless.status == 1 && endless.err.contains("/dev/zero cannot be used for TLS"),
        "{}",
        endless.err
    );
}

#[test]
fn an_error_message_contains_no_control_characters() {
    let ran = Place::without_store().run(&["config", "check", "--config", "no\u{1b}[31m.toml"]);
    assert!(
        ran.status == 1 && !ran.err.contains('\u{1b}') && ran.err.contains("no\u{fffd}[31m.toml"),
        "{}",
        ran.err
    );
}

#[test]
fn a_url_after_the_name_of_the_other_store_is_refused() {
    let ran = Place::without_store().run(&["--store", "sqlite:postgres://ada:s3cret@db/app", "jobs", "list"]);
    assert!(ran.status == 2 && ran.err.contains("postgres://") && !ran.err.contains("s3cret"), "{}", ran.err);
}
