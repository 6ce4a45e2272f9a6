//! Tests of the command with a Redis.

use crate::support;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use crate::support::Place;
use crate::support::http::ask;
use crate::support::process::Process;
use milepost_core::port::{Coordination, Wake, WakeStream};
use milepost_redis::{Redis, RedisOptions};
use milepost_testkit::redis::RedisServer;
use milepost_testkit::tls::Tls;

/// The URL of a port on which nothing listens.
const NOBODY: &str = "redis://127.0.0.1:1";

async fn listening(server: &RedisServer) -> (Redis, Box<dyn WakeStream>) {
    let redis = Redis::start(&server.url(), RedisOptions::default()).unwrap();
    assert!(redis.is_up_within(milepost_testkit::wait::LIMIT).await);
    let hints = redis.hints();
    (redis, hints)
}

/// Asks a worker to stop, and asserts that it exits successfully.
fn end(mut worker: Child) {
    let pid = nix::unistd::Pid::from_raw(worker.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM).unwrap();
    assert!(worker.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_enqueued_or_asked_to_stop_is_told_to_workers() {
    let place = Place::sqlite();
    let server = RedisServer::running().await;
    let (_redis, mut hints) = listening(&server).await;
    let url = server.url();
    let id = place.enqueue(&["--redis", &url]);
    assert_eq!(hints.next().await, Wake::Ready);
    tokio::task::block_in_place(|| place.work(None));
    place.run(&["jobs", "cancel", &id, "--redis", &url]).ok();
    assert_eq!(hints.next().await, Wake::Stop);
    assert_eq!(server.keys("milepost:stop:job:*").await, [format!("milepost:stop:job:{id}")]);
    let ran = place.run_with_input(
        &["enqueue", "mail", "--from", "-", "--format", "jsonl", "--redis", &url],
        "{\"a\": 1}\n{\"a\": 2}\n",
    );
    assert!(ran.ok().out.contains("2 enqueued"));
    assert_eq!(hints.next().await, Wake::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_announces_what_requests_change() {
    let place = Place::sqlite();
    let redis = RedisServer::running().await;
    let (_redis, mut hints) = listening(&redis).await;
    let (server, address) = Process::serve(&place, &["--only", "api", "--redis", &redis.url()]);
    let request = r#"{"kind": "mail", "key": "order-17"}"#;
    // The server does not wait for Redis when it starts, so that the first announcements can be lost.
    loop {
        let created = ask(&address, "POST", "/v1/jobs", request);
        assert!(created.starts_with("HTTP/1.1 20"), "{created}");
        if tokio::time::timeout(Duration::from_millis(100), hints.next()).await == Ok(Wake::Ready) {
            break;
        }
    }
    tokio::task::block_in_place(|| place.work(None));
    let id = &place.ids()[0];
    let path = format!("/v1/jobs/{id}/operate");
    let stopping = ask(&address, "POST", &path, r#"{"operation": "cancel"}"#);
    assert!(stopping.contains("stop_requested"), "{stopping}");
    while hints.next().await != Wake::Stop {}
    assert_eq!(redis.keys("milepost:stop:job:*").await, [format!("milepost:stop:job:{id}")]);
    server.leave();
}

#[test]
fn a_redis_that_is_not_there_is_told_of_and_hinders_nothing() {
    let place = Place::sqlite();
    let ran = place.run(&["enqueue", "mail", "--redis", NOBODY]).ok();
    assert!(ran.out.contains("enqueued") && ran.err.contains("note: Redis at 127.0.0.1:1: "), "{}", ran.err);
    let ran = place.run(&["jobs", "cancel", &place.ids()[0], "--redis", NOBODY]).ok();
    assert!(ran.out.ends_with("canceled\n"), "{}", ran.out);
}

#[test]
fn an_address_that_is_none_is_wrong_usage_and_its_password_is_not_told() {
    let place = Place::sqlite();
    for bad in ["cache:6379", "http://ada:s3cret@cache", "redis://ada:s3cret@cache/s3cret"] {
        let ran = place.run(&["enqueue", "mail", "--redis", bad]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains("--redis") && !ran.err.contains("s3cret"), "{}", ran.err);
    }
    let help = place
        .command(&["enqueue", "--help"])
        .env("MILEPOST_REDIS", "redis://:s3cret@cache")
        .output()
        .unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_uses_the_redis_of_its_configuration() {
    let place = Place::sqlite();
    let server = RedisServer::running().await;
    place.run(&["migrate"]).ok();
    let config = "[redis]\nurl = \"${CACHE}\"\nprefix = \"ours:\"\ntimeout = \"20s\"\n[kinds.mail]\nexec = { program = \"cat\" }\n";
    std::fs::write(place.path("milepost.toml"), config).unwrap();
    let worker = place.command(&["work"]).env("CACHE", server.url()).spawn().unwrap();
    milepost_testkit::wait::until("the worker sends heartbeats", || async {
        server.keys("ours:hb:worker:*").await.len() == 1
    })
    .await;
    end(worker);
    assert_eq!(server.keys("*").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_of_and_never_shown() {
    let place = Place::sqlite();
    let server = RedisServer::running().await;
    let mut owner = server.connect().await;
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0wner"]).exec_async(&mut owner).await.unwrap();
    let url = format!("redis://ada:s3cret@{}", server.address());
    let ran = place.run(&["enqueue", "mail", "--redis", &url]).ok();
    assert!(ran.err.contains("authentication failed") && !ran.err.contains("s3cret"), "{}", ran.err);

    place.write("milepost.toml", "[kinds.mail]\nexec = { program = \"cat\" }\n");
    let mut command = place.command(&["work", "--redis", &url]);
    let mut worker = command.env("MILEPOST_LOG", "trace").spawn().unwrap();
    let mut log = String::new();
    let mut lines = BufReader::new(worker.stderr.take().unwrap());
    while log.matches("authentication failed").count() < 3 {
        assert!(lines.read_line(&mut log).unwrap() > 0, "{log}");
    }
    end(worker);
    lines.read_to_string(&mut log).unwrap();
    assert!(log.contains("Redis is unavailable") && !log.contains("s3cret"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_redis_is_used_when_its_authority_is_trusted_and_else_not() {
    let place = Place::sqlite();
    let tls = Tls::create("nobody");
    let (server, address) = RedisServer::with_tls(&tls).await;
    let (_redis, mut hints) = listening(&server).await;
    let url = format!("rediss://{address}");
    // The command does not wait long for Redis, so the test retries on a slow machine.
    let enqueue = |url: &str, authority: Option<PathBuf>| {
        loop {
            let mut command = place.command(&["enqueue", "mail", "--redis", url]);
            command.envs(authority.clone().map(|file| ("SSL_CERT_FILE", file)));
            let ran = support::Ran::from(command.output().unwrap()).ok();
            if !["timed out", "no connection within"].iter().any(|late| ran.err.contains(late)) {
                return ran;
            }
        }
    };
    let trusted = enqueue(&url, Some(tls.authority()));
    assert_eq!((hints.next().await, trusted.err.contains("note:")), (Wake::Ready, false), "{}", trusted.err);
    let stranger = enqueue(&url, None);
    assert!(stranger.err.contains("UnknownIssuer"), "{}", stranger.err);
    let other_name = enqueue(&url.replace("localhost", "127.0.0.1"), Some(tls.authority()));
    assert!(other_name.err.contains("not valid for name"), "{}", other_name.err);
    let unchecked = place.run(&["enqueue", "mail", "--redis", &format!("{url}/#insecure")]);
    assert!(unchecked.status == 2 && unchecked.err.contains("#insecure"), "{}", unchecked.err);
}
