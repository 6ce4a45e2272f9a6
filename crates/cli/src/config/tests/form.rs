//! Tests of faults that any section can have.

use super::*;

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
            "known keys are batch, bulk, database, hide, kinds, limits, notify, redis, retention, schedules, serve, store, subscription, team, worker",
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
        &[("2:19 worker.queues[1] is a whole number", "string in quotes")],
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
    let exact = "has no exact 64-bit form";
    for number in
        ["9223372036854775808", "-9223372036854775809", "1e400", "inf", "-nan", "0.10000000000000000001"]
    {
        let schedule = format!(
            "[[schedules]]\nname = \"s\"\ncron = \"@daily\"\nkind = \"k\"\npayload = {{ a = [{{ b = {number} }}] }}\n"
        );
        let found = faults(&schedule);
        assert!(
            found.len() == 1 && found[0].starts_with("5:24") && found[0].contains(exact),
            "{number}: {found:?}"
        );
    }
    for number in
        ["9223372036854775807", "-9223372036854775808", "0x7fff_ffff", "1e300", "0.1", "-0.0", "+1_000.5"]
    {
        let schedule =
            format!("[[schedules]]\nname = \"s\"\ncron = \"@daily\"\nkind = \"k\"\npayload = {number}\n");
        assert!(parse(&schedule, Path::new("/"), |_| None).is_ok(), "{number}");
    }
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
    assert_faults(
        "[subscription.s]\nlease = \"1ms\"\nnull = {}\n",
        &[("2:9 a lease of 1ms cannot be renewed in time", "10s is a good lease")],
    );
    assert_faults(&format!("{KIND}timeout = \"0s\"\n"), &[("3:11 kinds.a.timeout = \"0s\"", "\"30s\"")]);
    assert_faults(
        &format!("{KIND}backoff = {{ base = \"2h\" }}\n"),
        &[("3:20 the first wait (7200s) is longer than the cap (3600s)", "set base to at most cap")],
    );
    assert_faults(
        "[subscription.s]\nnull = {}\nbackoff = { base = \"20m\" }\n",
        &[("3:20 the first wait (1200s) is longer than the cap (300s)", "set base to at most cap")],
    );
}

#[test]
fn a_path_of_a_store_with_nul_is_refused() {
    assert_faults("store = \"a\\u0000b.db\"\n", &[("1:9 ", "write the path of a SQLite file")]);
}

#[test]
fn a_secret_that_is_not_set_is_refused_with_its_name() {
    assert_faults(
        "store = \"postgres://app:${DB_PASSWORD}@db/app\"\n",
        &[("1:25 the environment variable DB_PASSWORD is not set", "set DB_PASSWORD")],
    );
    assert_faults("[worker]\nname = \"${\"\n", &[("2:9 ${ begins an environment variable", "$${")]);
    assert_faults(
        "[worker]\nlease = \"${TOKEN}\"\n",
        &[("2:9 worker.lease, filled in from the environment, is not a duration", "30s")],
    );
}

#[test]
fn a_value_of_the_environment_is_in_no_fault() {
    let text = "[serve]\ntrusted_proxies = [\"${TOKEN}\"]\n";
    let faults = parse(text, Path::new("/etc"), |_| Some("Sup3rS3cretValue77".to_owned())).unwrap_err();
    let shown = format!("{faults:?}");
    assert!(shown.contains("[secret]") && !shown.contains("Sup3rS3cret"), "{shown}");
}

#[test]
fn a_key_that_is_there_twice_says_where_the_first_is() {
    assert_faults(
        "[kinds.a]\nexec = { program = \"sh\" }\n\n[kinds.a]\nhttp = { url = \"http://localhost\" }\n\n[worker]\nlease = 3\n",
        &[
            ("4:8 a is defined twice; the first is in line 1", "remove or rename one"),
            ("8:9 worker.lease", "30s"),
        ],
    );
    assert_faults(
        "[worker]\nname = \"a\"\ndrain = \"1s\"\nname = \"b\"\n",
        &[("4:1 name is defined twice; the first is in line 2", "remove")],
    );
    assert_faults(
        "[kinds.a]\nexec = { program = \"sh\", program = \"ls\" }\n",
        &[("2:26 program is defined twice; the first is in line 2", "remove")],
    );
}

#[test]
fn what_is_no_toml_says_where() {
    let found = faults("[worker]\nname = w\nlease = \"30s\"\nqueues = [\"a\"\n");
    assert!(found.len() >= 2 && found[0].starts_with("2:8 this is not TOML"), "{found:#?}");
}

#[test]
fn all_faults_are_told_at_once_in_the_order_of_the_file() {
    let text = "store = 1\n[worker]\nlease = \"x\"\nnmae = \"w\"\n[kinds.a]\ntimeout = \"1\"\n[kinds.b]\nexec = { program = \"no-such-program\", args = 1 }\nbackoff = { base = \"2m\", cap = \"1m\" }\n";
    let found = faults(text);
    let places: Vec<&str> = found.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["1:9", "3:9", "4:1", "5:8", "6:11", "8:20", "8:46", "9:20"], "{found:#?}");
}

#[test]
fn a_value_with_a_reserved_member_is_refused() {
    let member = "{ \"$serde_json::private::RawValue\" = \"1\" }";
    for settings in [format!("kind = \"k\"\npayload = {member}"), format!("dag = \"d\"\ninput = {member}")] {
        assert_faults(
            &format!("[[schedules]]\nname = \"s\"\ncron = \"@daily\"\n{settings}\n"),
            &[("5:", "")],
        );
    }
}
