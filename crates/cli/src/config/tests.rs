//! Good files and bad ones.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value as Json, json};

use milepost_core::retention::{Keep, RetentionPolicy};

use super::command::EXAMPLE;
use super::format::Format;
use super::*;

/// The faults of a text, each as `line:column what → remedy`.
fn faults(text: &str) -> Vec<String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    match parse(text, Path::new("/"), variable) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .into_iter()
            .map(|fault| format!("{}:{} {} → {}", fault.line, fault.column, fault.what, fault.remedy))
            .collect(),
    }
}

/// Asserts that a text has exactly these faults: each begins so, and names this in its remedy.
#[track_caller]
fn assert_faults(text: &str, expected: &[(&str, &str)]) {
    let found = faults(text);
    assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
    for (found, (begins, remedy)) in found.iter().zip(expected) {
        let told = found.split(" → ").nth(1).unwrap();
        assert!(
            found.starts_with(begins) && told.contains(remedy),
            "{found}\ndoes not say {begins} → {remedy}"
        );
        assert!(!found.contains("s3cret"), "{found}");
    }
}

const KIND: &str = "[kinds.a]\nexec = { program = \"sh\" }\n";

#[test]
fn a_good_file_is_read_in_full() {
    let text = r#"
        store = "jobs.db"
        [worker]
        name = "w"
        queues = ["mail", "slow"]
        concurrency = 4
        lease = "1m 30s"
        poll_interval = "250ms"
        drain = "0s"
        [kinds.mail]
        http = { url = "https://mail.internal/send", headers = { Authorization = "Bearer ${TOKEN}" }, timeout = "5s" }
        timeout = "10s"
        backoff = { base = "2s", cap = "1m", jitter = 0 }
        [kinds.report.exec]
        program = "sh"
        args = ["-c", "echo $${HOME}"]
        env = { A = "b" }
        inherit_env = true
        cwd = "/"
        kill_grace = "2s"
    "#;
    let config = parse(text, Path::new("/etc"), |_| Some("t0ken".to_owned())).unwrap();
    assert_eq!(config.store, Some(StoreAddress::Sqlite("/etc/jobs.db".into())));
    let mut options = milepost::WorkerOptions::default();
    config.worker.apply(&mut options);
    assert_eq!((options.name.as_str(), options.concurrency), ("w", 4));
    assert_eq!((options.queues, options.lease.as_secs()), (vec!["mail".to_owned(), "slow".to_owned()], 90));
    let mut kinds = config.kinds;
    let mail = kinds.remove("mail").unwrap();
    assert_eq!((mail.timeout().unwrap().as_secs(), mail.backoff.policy().base.as_secs()), (10, 2));
    let Some(Executor::Http(http)) = mail.executor() else { panic!() };
    let http = http.config();
    assert_eq!((http.headers["Authorization"].as_str(), http.timeout.as_secs()), ("Bearer t0ken", 5));
    let Some(Executor::Exec(exec)) = kinds.remove("report").unwrap().executor() else { panic!() };
    let exec = exec.config(Path::new("/etc"));
    assert!(exec.program.is_absolute() && exec.inherit_env && exec.kill_grace.as_secs() == 2);
    assert_eq!((exec.args[1].as_str(), exec.env["A"].as_str()), ("echo ${HOME}", "b"));
}

#[test]
fn an_empty_file_has_no_fault() {
    assert!(faults("").is_empty());
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    assert_faults(
        "[worker]\nconcurency = 4\n",
        &[("2:1 unknown key concurency in worker", "did you mean concurrency?")],
    );
    assert_faults(
        "[worker]\npoll-interval = \"1s\"\n",
        &[("2:1 unknown key poll-interval", "did you mean poll_interval?")],
    );
    assert_faults("[wroker]\n", &[("1:2 unknown key wroker", "did you mean worker?")]);
    assert_faults(
        "[kinds.a]\nexec = { program = \"sh\", shell = true }\n",
        &[("2:26 unknown key shell in kinds.a.exec", "program")],
    );
    assert_faults(
        "colour = 1\n",
        &[(
            "1:1 unknown key colour",
            "known keys are kinds, limits, redis, retention, schedules, store, worker",
        )],
    );
}

#[test]
fn wrong_types_say_what_is_wanted() {
    assert_faults(
        "[worker]\nconcurrency = \"4\"\n",
        &[("2:15 worker.concurrency is a text", "whole number from 1 to 10000, without quotes")],
    );
    assert_faults("[worker]\nlease = 30\n", &[("2:9 worker.lease is a whole number", "\"30s\"")]);
    assert_faults("[worker]\nqueues = \"mail\"\n", &[("2:10 worker.queues is a text", "[\"a\", \"b\"]")]);
    assert_faults(
        "[worker]\nqueues = [\"mail\", 7]\n",
        &[("2:19 worker.queues[1] is a whole number", "text in quotes")],
    );
    assert_faults(
        "worker = 1\nstore = true\n",
        &[("1:10 worker is", "table"), ("2:9 store is true or false", "SQLite")],
    );
    assert_faults(
        &format!("{KIND}backoff = {{ jitter = \"a\" }}\n"),
        &[("3:22 kinds.a.backoff.jitter is a text", "from 0 to 1")],
    );
    assert_faults("[kinds]\na = \"sh\"\n", &[("2:5 kinds.a is a text", "table")]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for number in ["0", "-3", "10001", "99999999999999999999"] {
        let found = faults(&format!("[worker]\nconcurrency = {number}\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("2:15") && found[0].contains("from 1 to 10000"),
            "{found:?}"
        );
    }
    assert_faults(
        &format!("{KIND}backoff = {{ jitter = 1.5 }}\n"),
        &[("3:22 kinds.a.backoff.jitter is 1.5", "from 0 to 1")],
    );
    assert_faults(&format!("{KIND}backoff = {{ jitter = nan }}\n"), &[("3:22", "from 0 to 1")]);
    assert_faults("[worker]\nqueues = []\n", &[("2:10 worker.queues is empty", "list")]);
}

#[test]
fn durations_that_do_not_parse_are_refused() {
    for (text, wrong) in
        [("30", "lease"), ("soon", "lease"), ("-1s", "lease"), ("", "lease"), ("0s", "poll_interval")]
    {
        let found = faults(&format!("[worker]\n{wrong} = \"{text}\"\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("2:") && found[0].contains("\"30s\", \"10m\""),
            "{text}: {found:?}"
        );
    }
    assert_faults(
        "[worker]\nlease = \"10ms\"\n",
        &[("2:9 a lease of 10ms cannot be renewed in time", "500ms")],
    );
    assert_faults(&format!("{KIND}timeout = \"0s\"\n"), &[("3:11 kinds.a.timeout = \"0s\"", "\"30s\"")]);
    assert_faults(
        &format!("{KIND}backoff = {{ base = \"2h\" }}\n"),
        &[("3:20 the first wait (7200s) is longer than the cap (3600s)", "shorter")],
    );
}

#[test]
fn a_kind_has_exactly_one_executor() {
    assert_faults(
        "[kinds.a]\ntimeout = \"1s\"\n",
        &[("1:8 the kind a says neither http nor exec", "add http = ")],
    );
    assert_faults(
        &format!("{KIND}http = {{ url = \"http://localhost\" }}\n"),
        &[("3:8 the kind a says both http and exec", "keep one")],
    );
    assert_faults("[kinds.a]\nexec = {}\n", &[("2:8 kinds.a.exec says no program", "add program")]);
    assert_faults("[kinds.a.http]\ntimeout = \"1s\"\n", &[("1:1 kinds.a.http says no url", "https://")]);
    assert_faults(
        "[kinds.\"\"]\nexec = { program = \"sh\" }\n",
        &[("1:8 the kind \"\" is not usable", "1 to 200 bytes")],
    );
}

#[test]
fn a_program_must_be_there_and_executable() {
    assert_faults(
        "[kinds.a]\nexec = { program = \"no-such-program\" }\n",
        &[("2:20 kinds.a.exec.program = \"no-such-program\" is no program that can be run", "PATH")],
    );
    assert_faults("[kinds.a]\nexec = { program = \"/etc/passwd\" }\n", &[("2:20", "PATH")]);
    assert_faults("[kinds.a]\nexec = { program = \"echo hello\" }\n", &[("2:20", "arguments go into args")]);
    assert_faults(
        &KIND.replace(" }", ", cwd = \"/no/such\" }"),
        &[("2:32 kinds.a.exec.cwd = \"/no/such\" is no folder", "folder")],
    );
}

#[test]
fn a_url_must_be_one_that_can_be_called() {
    for url in ["mail.internal/send", "ftp://mail.internal", "https://", "http://ada:s3cret@:x"] {
        assert_faults(
            &format!("[kinds.a]\nhttp = {{ url = \"{url}\" }}\n"),
            &[("2:16 kinds.a.http.url is no URL that can be used here", "https://")],
        );
    }
    assert_faults(
        "[kinds.a.http]\nurl = \"http://localhost\"\nheaders = { \"a b\" = \"x\", Idempotency-Key = \"x\", Bad = \"s3cret\\n\" }\n",
        &[
            ("3:13 \"a b\" cannot be", "X-Team"),
            ("3:26 the header \"Idempotency-Key\" is set", ""),
            ("3:49 the value of the header \"Bad\"", "one line"),
        ],
    );
}

#[test]
fn a_redis_is_read_and_its_password_is_not_told() {
    let text = format!(
        "{KIND}[redis]\nurl = \"redis://:${{TOKEN}}@cache/1\"\nprefix = \"jobs:\"\ntimeout = \"50ms\"\n"
    );
    assert_eq!(faults(&text), Vec::<String>::new());
    let config = parse(&text, Path::new("/"), |_| Some("s3cret".to_owned())).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    let (url, options) = config.redis.unwrap().config();
    assert_eq!((url.as_str(), options.prefix.as_str()), ("redis://:s3cret@cache/1", "jobs:"));
    assert_eq!(options.timeout, std::time::Duration::from_millis(50));
    assert_faults(
        "[redis]\nurl = \"http://:${TOKEN}@cache\"\nprefix = \"a b\"\ntimeout = \"0s\"\n",
        &[
            ("2:7 redis.url, filled in from the environment, is no Redis", "redis://HOST"),
            ("3:10 a prefix that cannot stand before keys", "without spaces"),
            ("4:11 redis.timeout = \"0s\" is no duration that can be used", "30s"),
        ],
    );
    assert_faults("[redis]\nprefix = \"a:\"\n", &[("1:1 redis says no url", "redis://HOST")]);
}

#[test]
fn a_store_must_be_an_address_or_a_path_and_its_password_is_not_told() {
    assert_faults("store = \"mysql://ada:s3cret@db/app\"\n", &[("1:9 store is no store", "postgres://USER")]);
    assert_faults("store = \"\"\n", &[("1:9 store is no store", "path")]);
    assert_faults(
        "store = \"mysql://ada:${TOKEN}@db/app\"\n",
        &[("1:9 store, filled in from the environment, is no store", "path")],
    );
}

#[test]
fn a_secret_that_is_not_set_is_refused_with_its_name() {
    assert_faults(
        "store = \"postgres://app:${DB_PASSWORD}@db/app\"\n",
        &[("1:25 the environment variable DB_PASSWORD is not set", "set DB_PASSWORD")],
    );
    assert_faults("[worker]\nname = \"${\"\n", &[("2:9 ${ begins a variable", "$${")]);
    assert_faults(
        "[worker]\nlease = \"${TOKEN}\"\n",
        &[("2:9 worker.lease, filled in from the environment, is no duration", "30s")],
    );
}

#[test]
fn a_key_that_is_there_twice_says_where_the_first_is() {
    assert_faults(
        "[kinds.a]\nexec = { program = \"sh\" }\n\n[kinds.a]\nhttp = { url = \"http://localhost\" }\n\n[worker]\nlease = 3\n",
        &[("4:8 a is there twice; the first is in line 1", "remove one"), ("8:9 worker.lease", "30s")],
    );
    assert_faults(
        "[worker]\nname = \"a\"\ndrain = \"1s\"\nname = \"b\"\n",
        &[("4:1 name is there twice; the first is in line 2", "remove")],
    );
    assert_faults(
        "[kinds.a]\nexec = { program = \"sh\", program = \"ls\" }\n",
        &[("2:26 program is there twice; the first is in line 2", "remove")],
    );
}

#[test]
fn what_is_no_toml_says_where() {
    let found = faults("[worker]\nname = w\nlease = \"30s\"\nqueues = [\"a\"\n");
    assert!(found.len() >= 2 && found[0].starts_with("2:8 this is no TOML"), "{found:#?}");
}

#[test]
fn schedules_are_read_in_full() {
    let text = r#"
        [[schedules]]
        name = "nightly"
        cron = "0 3 * * *"
        zone = "Europe/Berlin"
        kind = "report"
        payload = { days = 1 }
        queue = "slow"
        priority = 4
        max_attempts = 3
        group = "reports"
        timeout = "5m"
        misfire = "all"
        misfire_max = 7
        misfire_grace = "2m"
        [[schedules]]
        name = "poll"
        every = "10m"
        kind = "poll"
    "#;
    let config = parse(text, Path::new("/"), |_| None).unwrap();
    let schedules = config.schedules.unwrap();
    let nightly = schedules[0].schedule().unwrap();
    assert_eq!((nightly.spec.zone_name(), nightly.job.payload.get()), ("Europe/Berlin", r#"{"days":1}"#));
    assert_eq!((nightly.job.queue.as_str(), nightly.job.max_attempts), ("slow", 3));
    assert_eq!(nightly.job.group.as_deref(), Some("reports"));
    assert_eq!((nightly.misfire.max(), nightly.misfire_grace.as_secs()), (Some(7), 120));
    let poll = schedules[1].schedule().unwrap();
    assert_eq!((poll.spec.to_string(), poll.job.payload.get()), ("@every 10m".to_owned(), "null"));
    assert!(parse("", Path::new("/"), |_| None).unwrap().schedules.is_none(), "nothing is said about them");
}

#[test]
fn schedules_that_could_not_tick_are_refused() {
    let schedule = |lines: &str| format!("[[schedules]]\nname = \"n\"\nkind = \"k\"\n{lines}\n");
    let cases = [
        ("", "1:1 the schedule says neither cron nor every", "every = \"10m\""),
        ("cron = \"@daily\"\nevery = \"1m\"", "5:9 the schedule says both", "keep one"),
        ("cron = \"0 0 30 2 *\"", "4:8 the cron expression \"0 0 30 2 *\" never fires", "preview"),
        ("cron = \"61 * * * *\"", "4:8 the minute field", "preview"),
        (
            "cron = \"@daily\"\nzone = \"Europe/Berlni\"",
            "5:8 there is no time zone \"Europe/Berlni\"",
            "IANA",
        ),
        ("every = \"1500ms\"", "4:9 the interval", "\"30s\""),
        ("every = \"1m\"\nzone = \"UTC\"", "5:8 an interval goes by no zone's clock", "leave it out"),
        ("every = \"1m\"\nmisfire = \"al\"", "5:11 schedules[0].misfire is \"al\"", "skip, once, all"),
        ("every = \"1m\"\nmisfire_max = 5", "5:15 misfire_max means something only", "misfire = \"all\""),
        ("every = \"1m\"\npriority = 5", "5:12 schedules[0].priority is 5", "from 1 to 4"),
        ("every = \"1m\"\nmis_fire = \"all\"", "5:1 unknown key mis_fire", "misfire"),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&schedule(lines), &[(begins, remedy)]);
    }
    let twice = format!("{0}{0}", schedule("every = \"1m\""));
    assert_faults(&twice, &[("6:8 there is another schedule with the name n", "another name")]);
}

#[test]
fn limits_and_retention_are_read_in_full() {
    let text = r#"
        [[limits]]
        kind = "mail"
        rate = "10/s"
        burst = 20
        [[limits]]
        group = "tenant:*"
        concurrency = 3
        [retention]
        succeeded = "2d"
        failed = "forever"
    "#;
    let config = parse(text, Path::new("/"), |_| None).unwrap();
    let limits: Vec<_> = config.limits.unwrap().iter().map(LimitEntry::limit).collect();
    let rate = limits[0].rate.unwrap();
    assert_eq!(
        (limits[0].target.to_string(), rate.per_second, rate.burst),
        ("kind mail".to_owned(), 10.0, 20)
    );
    assert_eq!((limits[1].target.name(), limits[1].slots, limits[1].rate), ("tenant:*", Some(3), None));
    let policy = config.retention.policy();
    assert_eq!((policy.succeeded, policy.failed), (Keep::days(2), Keep::Forever));
    assert_eq!(policy.canceled, RetentionPolicy::default().canceled);
}

#[test]
fn limits_and_periods_that_cannot_be_are_refused() {
    let cases = [
        ("[[limits]]\nrate = \"1/s\"", "1:1 the limit says neither", "tenant:*"),
        ("[[limits]]\nkind = \"a\"\ngroup = \"b\"\nrate = \"1/s\"", "1:1 the limit says both", "kind"),
        ("[[limits]]\nkind = \"a\"", "1:1 it limits nothing", "LIMITS.md"),
        ("[[limits]]\nkind = \"a\"\nconcurrency = 2", "1:1 a kind has no concurrency", "LIMITS.md"),
        ("[[limits]]\nkind = \"a\"\nrate = \"fast\"", "3:8 limits[0].rate = \"fast\" is no rate", "10/s"),
        ("[[limits]]\ngroup = \"a\"\nconcurrency = 2\nburst = 3", "4:9 a burst means something only", "rate"),
        ("[retention]\nfailed = \"always\"", "2:10 retention.failed = \"always\" is no period", "forever"),
    ];
    for (text, begins, remedy) in cases {
        assert_faults(text, &[(begins, remedy)]);
    }
    let twice = "[[limits]]\nkind = \"a\"\nrate = \"1/s\"\n".repeat(2);
    assert_faults(&twice, &[("4:1 kind a has another limit", "as a whole")]);
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_file() {
    let text = "store = 1\n[worker]\nlease = \"x\"\nnmae = \"w\"\n[kinds.a]\ntimeout = \"1\"\n[kinds.b]\nexec = { program = \"no-such-program\", args = 1 }\nbackoff = { base = \"2m\", cap = \"1m\" }\n";
    let found = faults(text);
    let places: Vec<&str> = found.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["1:9", "3:9", "4:1", "5:8", "6:11", "8:20", "8:46", "9:20"], "{found:#?}");
}

#[test]
fn the_example_has_no_fault_and_fits_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    parse(EXAMPLE, folder.path(), |_| None).unwrap();
    let example: Json = toml::from_str(EXAMPLE).unwrap();
    jsonschema::validate(&schema::of_sections(), &example).unwrap();
}

#[test]
fn a_validator_of_all_of_json_schema_finds_the_same_faults_of_form() {
    let schema = jsonschema::validator_for(&schema::of_sections()).unwrap();
    let good = json!({ "kinds": { "a": { "exec": { "program": "sh" }, "backoff": { "jitter": 0.5 } } } });
    assert!(schema.is_valid(&good));
    for (pointer, bad) in [
        ("/kinds/a/exec/program", json!(1)),
        ("/kinds/a/backoff/jitter", json!(2)),
        ("/kinds/a/exec", json!({})),
        ("/kinds/a", json!({ "exec": { "program": "sh" }, "colour": 1 })),
        ("/kinds", json!([])),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = bad;
        assert!(!schema.is_valid(&document), "{document}");
        let text = toml::to_string(&document).unwrap();
        assert!(!faults(&text).is_empty(), "{text}");
    }
}

/// Every word of the schema with the value it has.
fn words<'a>(schema: &'a Json, found: &mut Vec<(&'a str, &'a Json)>) {
    let Some(object) = schema.as_object() else { return };
    for (word, value) in object {
        found.push((word, value));
        match word.as_str() {
            "properties" => value.as_object().unwrap().values().for_each(|schema| words(schema, found)),
            "items" | "additionalProperties" => words(value, found),
            _ => {}
        }
    }
}

#[test]
fn the_schema_says_nothing_that_the_check_does_not_understand() {
    let schema = schema::of_sections();
    let mut found = Vec::new();
    words(&schema, &mut found);
    let understood = [
        "$schema",
        "title",
        "description",
        "type",
        "properties",
        "additionalProperties",
        "required",
        "items",
        "minItems",
        "minimum",
        "maximum",
        "enum",
        "format",
    ];
    let strange: BTreeSet<&str> =
        found.iter().map(|(word, _)| *word).filter(|word| !understood.contains(word)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    for (word, value) in found {
        match word {
            "type" => assert!(value.is_string(), "{value}"),
            // Formats of numbers are of no use to anybody.
            "format" => assert!(Format::named(value.as_str().unwrap()).is_some(), "{value}"),
            _ => {}
        }
    }
}
