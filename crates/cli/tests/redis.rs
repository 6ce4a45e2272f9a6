//! The command beside a Redis.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use milepost_core::port::{Coordination, Wake, WakeStream};
use milepost_redis::{Redis, RedisOptions};
use milepost_testkit::redis::RedisServer;
use support::Place;

/// Where nobody listens.
const NOBODY: &str = "redis://127.0.0.1:1";

async fn listening(server: &RedisServer) -> (Redis, Box<dyn WakeStream>) {
    let redis = Redis::start(&server.url(), RedisOptions::default()).unwrap();
    assert!(redis.is_up_within(Duration::from_secs(30)).await);
    let hints = redis.hints();
    (redis, hints)
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

#[test]
fn a_redis_that_is_not_there_is_told_of_and_hinders_nothing() {
    let place = Place::sqlite();
    let ran = place.run(&["enqueue", "mail", "--redis", NOBODY]).ok();
    assert!(ran.out.contains("enqueued") && ran.err.contains("Redis does not answer"), "{}", ran.err);
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
    let config =
        "[redis]\nurl = \"${CACHE}\"\nprefix = \"ours:\"\n[kinds.mail]\nexec = { program = \"cat\" }\n";
    std::fs::write(place.path("milepost.toml"), config).unwrap();
    let mut worker = place.command(&["work"]).env("CACHE", server.url()).spawn().unwrap();
    milepost_testkit::wait::until("the worker tells that it lives", || async {
        server.keys("ours:hb:worker:*").await.len() == 1
    })
    .await;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker.id().cast_signed()), nix::sys::signal::SIGTERM)
        .unwrap();
    assert!(worker.wait().unwrap().success());
    assert_eq!(server.keys("*").await, Vec::<String>::new());
}
