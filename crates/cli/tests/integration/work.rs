//! Tests of `milepost work`: jobs run by programs and servers of a configuration, and all ways in which a worker ends.

#![cfg(target_os = "linux")]

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::support::process::Process;
use crate::support::{Place, on_each_store};
use milepost_testkit::proxy::Proxy;
use serde_json::{Value, json};

on_each_store! {
    jobs_are_run_by_programs_and_servers_as_the_file_says,
    a_worker_asked_to_leave_hands_back_what_does_not_end,
    a_second_signal_ends_all_at_once,
    a_signal_that_arrives_twice_does_not_end_what_runs,
    a_program_dies_with_a_worker_that_is_killed,
    what_an_operator_set_stays_and_the_log_says_so_once,
    what_a_configuration_changes_is_audited_once,
    a_start_that_is_refused_changes_nothing,
}

/// Starts a worker and returns when it has logged which kinds it runs.
pub(crate) fn start(place: &Place, args: &[&str]) -> Process {
    let mut work = Process::spawn(&mut place.command(&[&["work"], args].concat()));
    work.hear(" runs ");
    work
}

fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    support::until(what, || ask().ok_or_else(String::new))
}

pub(crate) fn until_in(place: &Place, job: &str, state: &str) -> Value {
    until(&format!("job {job} is {state}"), || {
        let view = place.job(job);
        (view["state"] == state).then_some(view)
    })
}

pub(crate) fn enqueue(place: &Place, kind: &str, payload: &Value) -> String {
    let answer = place.run(&["enqueue", kind, "--payload", &payload.to_string(), "--json"]).json();
    answer["job"].as_str().unwrap().to_owned()
}

/// Returns the process id that a script wrote to the file.
fn pid_in(place: &Place, file: &str) -> u32 {
    until("a process writes its id", || std::fs::read_to_string(place.path(file)).ok()?.trim().parse().ok())
}

fn until_gone(pid: u32) {
    until(&format!("process {pid} has ended"), || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
            .then_some(())
    });
}

/// Starts a server that answers every request with a list that contains the posted value.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/echo", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let line = line.trim_end().to_lowercase();
                if let Some(bytes) = line.strip_prefix("content-length: ") {
                    length = bytes.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let body = format!("[{}]", String::from_utf8(body).unwrap());
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.into_inner().write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    url
}

/// A program that runs until it is killed: it and its child ignore SIGTERM.
const DEAF: &str = r#"
[worker]
drain = "DRAIN"
[kinds.deaf.exec]
program = "sh"
args = ["-c", "trap '' TERM; sleep 1000 & echo $! > child; echo $$ > leader; while :; do sleep 1000; done"]
kill_grace = "GRACE"
"#;

fn deaf(place: &Place, drain: &str, grace: &str) -> (Process, String, u32, u32) {
    place.write("milepost.toml", DEAF.replace("DRAIN", drain).replace("GRACE", grace));
    let job = enqueue(place, "deaf", &json!({}));
    let work = start(place, &[]);
    let (leader, child) = (pid_in(place, "leader"), pid_in(place, "child"));
    (work, job, leader, child)
}

fn jobs_are_run_by_programs_and_servers_as_the_file_says(place: Place) {
    let file = format!(
        "[kinds.echo.exec]\nprogram = \"cat\"\n\n[kinds.post.http]\nurl = \"{}\"\nallow_networks = [\"127.0.0.0/8\"]\n\n\
         [kinds.bounce]\nexec = {{ program = \"sh\", args = [\"-c\", \"echo no such mailbox >&2; exit 65\"] }}\n",
        echo_server()
    );
    // The worker creates the tables, as the first enqueue would.
    let place = place.emptied();
    place.write("milepost.toml", file);
    let mut work = start(&place, &["--name", "tester", "--concurrency", "2"]);
    assert!(work.heard.contains("tester runs bounce, echo, post from milepost.toml"), "{}", work.heard);
    let echo = enqueue(&place, "echo", &json!({ "to": "ada" }));
    let post = enqueue(&place, "post", &json!(7));
    let bounce = enqueue(&place, "bounce", &json!({}));
    assert_eq!(until_in(&place, &echo, "succeeded")["result"], json!({ "to": "ada" }));
    assert_eq!(until_in(&place, &post, "succeeded")["result"], json!([7]));
    until_in(&place, &bounce, "failed");
    let shown = place.run(&["jobs", "show", &bounce]).ok().out;
    assert!(shown.contains("exec_65") && shown.contains("no such mailbox"), "{shown}");
    let workers = place.run(&["workers", "list", "--json"]).json();
    assert_eq!(workers[0]["name"], "tester");
    work.hear("exec_65");
    let log = work.leave();
    assert!(log.contains("succeeded") && log.contains("left") && log.contains("no such mailbox"), "{log}");
}

fn a_worker_asked_to_leave_hands_back_what_does_not_end(place: Place) {
    let (work, job, leader, child) = deaf(&place, "200ms", "300ms");
    work.signal("INT");
    let (status, log) = work.end();
    assert_eq!(status, Some(0), "{log}");
    let view = place.job(&job);
    assert_eq!(
        (&view["state"], &view["attempt"]),
        (&"pending".into(), &0.into()),
        "handed back, the attempt not spent"
    );
    until_gone(leader);
    until_gone(child);
}

fn a_second_signal_ends_all_at_once(place: Place) {
    // Without a second signal it would wait for an hour.
    let (mut work, _, leader, child) = deaf(&place, "1h", "1h");
    work.signal("TERM");
    work.hear("claiming no further jobs");
    // A signal within a second of the previous one is ignored.
    until("it has ended", || {
        let ended = work.child.try_wait().unwrap();
        if ended.is_none() {
            work.signal("TERM");
        }
        ended
    });
    let (status, log) = work.end();
    assert_eq!(status, Some(128 + 15), "{log}");
    until_gone(leader);
    until_gone(child);
}

fn a_signal_that_arrives_twice_does_not_end_what_runs(place: Place) {
    let waits =
        "program = \"sh\"\nargs = [\"-c\", \"echo $$ > leader; while [ ! -e go ]; do sleep 0.05; done\"]\n";
    place.write("milepost.toml", format!("[worker]\ndrain = \"1h\"\n[kinds.waits.exec]\n{waits}"));
    let job = enqueue(&place, "waits", &json!({}));
    let mut work = start(&place, &[]);
    pid_in(&place, "leader");
    // `timeout` also sends the signal twice.
    work.signal("TERM");
    work.signal("TERM");
    work.hear("claiming no further jobs");
    work.signal("TERM");
    place.write("go", "");
    let (status, log) = work.end();
    assert_eq!(status, Some(0), "{log}");
    assert_eq!(place.job(&job)["state"], "succeeded");
}

fn a_program_dies_with_a_worker_that_is_killed(place: Place) {
    let (work, job, leader, child) = deaf(&place, "1h", "1h");
    work.signal("KILL");
    let (status, _) = work.end();
    assert_eq!(status, None);
    until_gone(leader);
    assert_eq!(place.job(&job)["state"], "running", "until its lease has expired");
    // The program's child has no parent left that would stop it.
    let _ = Command::new("kill").args(["-s", "KILL", &child.to_string()]).status();
}

const CONFIGURED: &str = r#"
kinds.mail.exec.program = "cat"
[[limits]]
kind = "mail"
rate = "10/s"
[[schedules]]
name = "poll"
every = "10m"
kind = "mail"
"#;

/// Runs a worker with [`CONFIGURED`] to its end and returns its log.
fn configured_log(place: &Place) -> String {
    place.write("milepost.toml", CONFIGURED);
    let work = start(place, &[]);
    work.signal("TERM");
    work.end().1
}

fn what_an_operator_set_stays_and_the_log_says_so_once(place: Place) {
    let remove = [["limits", "remove", "--kind", "mail"].as_slice(), &["schedules", "remove", "poll"]];
    let make = [
        ["limits", "set", "--kind", "mail", "--rate", "1/h"].as_slice(),
        &["schedules", "add", "poll", "--every", "1h", "--kind", "mail", "--replace"],
    ];
    let stands = |source: &str| {
        let limits = place.run(&["limits", "list", "--json"]).json();
        let schedules = place.run(&["schedules", "list", "--json"]).json();
        assert_eq!((&limits[0]["source"], &schedules[0]["source"]), (&source.into(), &source.into()));
    };
    assert!(!configured_log(&place).contains("operator"));
    stands("config");
    for args in remove {
        let refused = place.run(args);
        assert!(refused.status == 1 && refused.err.contains("comes from a configuration"), "{}", refused.err);
    }
    for args in make {
        let made = place.run(args).ok();
        assert!(made.err.contains("a configuration, which is ignored"), "{}", made.err);
        assert_eq!(place.run(args).ok().err, "", "it belongs to the operator");
    }
    let log = configured_log(&place);
    for said in ["an operator set a limit of kind mail", "an operator created a schedule poll"] {
        assert_eq!(log.matches(said).count(), 1, "{said}: {log}");
    }
    stands("operator");
    for args in remove {
        place.run(args).ok();
    }
    assert!(!configured_log(&place).contains("operator"));
    stands("config");
}

#[test]
fn a_faulty_file_runs_nothing() {
    let place = Place::without_store();
    place.write("milepost.toml", "[kinds.a]\nexec = { program = \"no-such-program\" }\n");
    let ran = place.run(&["work"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("milepost.toml:2:20: kinds.a.exec.program"), "{}", ran.err);
    place.write("milepost.toml", "");
    let ran = place.run(&["work"]);
    assert!(ran.status == 1 && ran.err.contains("[kinds.echo]"), "{}", ran.err);
    assert!(!place.path("jobs.db").exists());
}

#[test]
fn a_store_that_is_away_is_named_without_its_password() {
    let place = Place::without_store();
    place.write("milepost.toml", "store = \"postgres://ada:${PW}@127.0.0.1:1/app?connect_timeout=1\"\n[kinds.a]\nexec = { program = \"cat\" }\n");
    let mut work = place.command(&["work"]);
    let ran = support::Ran::from(work.env("PW", "s3cret").env_remove("MILEPOST_STORE").output().unwrap());
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("ada:***@127.0.0.1:1/app") && ran.err.contains("because: "), "{}", ran.err);
    assert!(!ran.err.contains("s3cret"), "{}", ran.err);
}

#[test]
fn the_environment_goes_before_the_file_and_flags_go_before_both() {
    let place = Place::without_store();
    place.write("milepost.toml", "store = \"of-file.db\"\n[worker]\nname = \"of file\"\nconcurrency = 3\n[kinds.a]\nexec = { program = \"cat\" }\n");
    let mut of_file = Process::spawn(place.command(&["work"]).env_remove("MILEPOST_STORE"));
    of_file.hear("of file runs a");
    assert!(
        of_file.heard.contains("of-file.db") && of_file.heard.contains("concurrency=3"),
        "{}",
        of_file.heard
    );
    let mut of_environment =
        Process::spawn(place.command(&["work"]).env("MILEPOST_WORKER_NAME", "of environment"));
    of_environment.hear("of environment runs a");
    assert!(of_environment.heard.contains("jobs.db"), "{}", of_environment.heard);
    let flags = ["--store", "sqlite:of-flag.db", "work", "--name", "of flag", "--queue", "a", "--queue", "b"];
    let mut of_flag = Process::spawn(place.command(&flags).env("MILEPOST_WORKER_NAME", "of environment"));
    of_flag.hear("of flag runs a");
    assert!(of_flag.heard.contains("of-flag.db") && of_flag.heard.contains("a, b"), "{}", of_flag.heard);
}

fn a_start_that_is_refused_changes_nothing(place: Place) {
    place.run(&["migrate"]).ok();
    place.write("close.toml", "name = \"close\"\n[tasks.load]\nkind = \"echo\"\n");
    place.write(
        "milepost.toml",
        r#"
        kinds.echo.exec.program = "cat"
        limits = [{ kind = "echo", rate = "5/s" }]
        schedules = [{ name = "hourly", every = "1h", kind = "echo" }]
        batch.close.file = "close.toml"
        subscription.log.jsonl.path = "events.jsonl"
        [bulk.letters]
        source = "select id from missing where id > :cursor order by id limit :limit"
        key = ["id"]
        exec = { program = "cat" }
        "#,
    );
    for command in ["work", "serve"] {
        let ran = place.run(&[command]);
        assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("letters"), "{}", ran.err);
    }
    place.write("operate.toml", "name = \"operate\"\n[tasks.load]\nkind = \"milepost.operate\"\n");
    let config = place.read("milepost.toml");
    let config = config.split("[bulk.letters]").next().unwrap();
    place.write(
        "milepost.toml",
        config.replace("batch.close", "batch.operate.file = \"operate.toml\"\nbatch.close"),
    );
    for command in ["work", "serve"] {
        let ran = place.run(&[command]);
        assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("milepost.operate"), "{}", ran.err);
    }
    assert_eq!(place.run(&["audit", "--json"]).json(), json!([]));
    assert_eq!(place.run(&["events", "subscriptions", "--json"]).json(), json!([]));
}

fn what_a_configuration_changes_is_audited_once(place: Place) {
    for _ in 0..2 {
        configured_log(&place);
    }
    let audit = place.run(&["audit", "--json"]).json();
    let told: Vec<_> = audit.as_array().unwrap().iter().map(|it| (&it["what"], &it["why"])).collect();
    let why = &json!("applied from the configuration");
    assert_eq!(told, [(&json!("schedule.put"), why), (&json!("limit.put"), why)]);
}

#[test]
fn a_store_that_cannot_be_reached_at_the_start_is_waited_for() {
    let place = Place::postgres();
    place.write("milepost.toml", "[kinds.echo.exec]\nprogram = \"cat\"\n");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (proxy, url) = runtime.block_on(Proxy::for_url(&place.store));
    proxy.shut(true);
    for command in ["work", "serve"] {
        let refused = place.run(&["--store", &url, command, "--store-wait", "0s"]);
        assert!(refused.status == 1 && refused.err.contains("cannot use the store"), "{}", refused.err);
    }
    let mut work = Process::spawn(&mut place.command(&["--store", &url, "work", "--store-wait", "1h"]));
    work.hear("the store cannot be reached; trying again");
    proxy.shut(false);
    work.hear(" runs ");
    work.leave();
    // A process that waits for its store can be stopped.
    proxy.shut(true);
    let mut serve = Process::spawn(&mut place.command(&["--store", &url, "serve", "--store-wait", "1h"]));
    serve.hear("the store cannot be reached; trying again");
    serve.signal("TERM");
    let (status, log) = serve.end();
    assert_eq!(status, Some(143), "{log}");
}
