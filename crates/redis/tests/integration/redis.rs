//! The coordination port against a real Redis.

use std::time::{Duration, Instant};

use milepost_core::ident::{EventId, JobId, Run, RunToken, WorkerId};
use milepost_core::port::{Coordination, InboxCache, Remembered, Wake, WakeStream};
use milepost_core::transition::Verb;
use milepost_redis::{Redis, RedisOptions};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::redis::RedisServer;
use milepost_testkit::wait;

const LONG: Duration = Duration::from_secs(600);

/// Returns options with a time limit that is long enough for a slow machine.
fn patient() -> RedisOptions {
    RedisOptions { timeout: wait::LIMIT, ..RedisOptions::default() }
}

/// Returns the Redis that all tests share, with a prefix for this test.
fn own() -> (String, RedisOptions) {
    let url = std::env::var("MILEPOST_TEST_REDIS")
        .expect("MILEPOST_TEST_REDIS is not set; run `scripts/test`, or `scripts/services run cargo test`");
    (url, RedisOptions { prefix: format!("{}:", uuid::Uuid::now_v7()), ..patient() })
}

async fn connected(url: &str, options: RedisOptions) -> Redis {
    let redis = Redis::start(url, options).unwrap();
    assert!(redis.is_up_within(wait::LIMIT).await, "Redis answers");
    redis
}

fn run(job: JobId, token: i32) -> Run {
    Run { job, token: RunToken(token) }
}

/// Consumes the pending hints: after the connection was made there is one of each type.
async fn both(hints: &mut dyn WakeStream) {
    let mut seen = [hints.next().await, hints.next().await];
    seen.sort_by_key(|wake| *wake == Wake::Stop);
    assert_eq!(seen, [Wake::Ready, Wake::Stop]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_run_takes_the_lock_over_and_an_older_one_neither_keeps_nor_takes_it() {
    let (url, options) = own();
    let (zombie, other) = (connected(&url, options.clone()).await, connected(&url, options).await);
    let job = JobId::new();
    assert!(!zombie.lock(&[run(job, 1)], LONG).await);
    assert!(other.is_held_by_older(run(job, 2)).await);
    assert!(!other.is_held_by_older(run(job, 1)).await, "the lock belongs to the run itself");
    other.lock(&[run(job, 2)], LONG).await;
    zombie.lock(&[run(job, 1)], LONG).await;
    zombie.unlock(&[run(job, 1)]).await;
    assert!(other.is_held_by_older(run(job, 3)).await, "the lock of the newer run is kept");
    assert!(!other.is_held_by_older(run(job, 2)).await);
    other.unlock(&[run(job, 2)]).await;
    assert!(!other.is_held_by_older(run(job, 3)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_renewed_runs_out() {
    let (url, options) = own();
    let redis = connected(&url, options).await;
    let runs: Vec<Run> = (0..1200).map(|_| run(JobId::new(), 1)).collect();
    redis.lock(&runs, Duration::from_secs(20)).await;
    let last = run(runs[1199].job, 2);
    assert!(redis.is_held_by_older(last).await, "many runs are locked in one call");
    wait::until("the lock has run out", || async { !redis.is_held_by_older(last).await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_heard_by_all_and_found_by_whoever_locks_the_job_later() {
    let (url, options) = own();
    let (teller, worker) = (connected(&url, options.clone()).await, connected(&url, options).await);
    let mut hints = worker.hints();
    let job = JobId::new();
    assert!(!worker.lock(&[run(job, 1)], LONG).await);
    assert!(teller.flag_stop(job, Verb::Cancel).await);
    assert_eq!(hints.next().await, Wake::Stop);
    assert!(worker.lock(&[run(JobId::new(), 1), run(job, 1)], LONG).await, "the flag is still set");
    assert!(!worker.lock(&[run(JobId::new(), 1)], LONG).await);
    assert!(teller.announce_ready().await);
    assert_eq!(hints.next().await, Wake::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_with_different_prefixes_do_not_hear_one_another() {
    let (url, options) = own();
    let redis = connected(&url, options.clone()).await;
    let stranger = connected(&url, own().1).await;
    let mut hints = redis.hints();
    assert!(stranger.announce_ready().await && stranger.flag_stop(JobId::new(), Verb::Abort).await);
    stranger.lock(&[run(JobId::new(), 1)], LONG).await;
    let neighbour = connected(&url, options).await;
    assert!(neighbour.flag_stop(JobId::new(), Verb::Abort).await);
    assert!(neighbour.announce_ready().await);
    assert_eq!(hints.next().await, Wake::Stop, "the first hint is from the same prefix");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_remembered_for_its_consumer_once_it_is_taken_in() {
    let (url, options) = own();
    let (one, other) = (connected(&url, options.clone()).await, connected(&url, options).await);
    let event = EventId::new();
    assert_eq!(one.recall("billing", event).await, Remembered::Nothing);
    assert_eq!(other.recall("billing", event).await, Remembered::Processing);
    assert_eq!(other.recall("mailer", event).await, Remembered::Nothing, "another consumer");
    one.forget("billing", event).await;
    assert_eq!(other.recall("billing", event).await, Remembered::Nothing);
    other.remember("billing", event).await;
    assert_eq!(one.recall("billing", event).await, Remembered::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_not_remembered() {
    let server = RedisServer::running().await;
    let redis = connected(&server.url(), patient()).await;
    let event = EventId::new();
    redis.remember("billing", event).await;
    assert_eq!(redis.recall("billing", event).await, Remembered::Done);
    server.kill().await;
    assert_eq!(redis.recall("billing", event).await, Remembered::Nothing);
    redis.remember("billing", event).await;
    server.start().await;
    assert!(redis.is_up_within(wait::LIMIT).await);
    wait::until("Redis is queried again", || async {
        redis.recall("billing", event).await != Remembered::Nothing
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_return_at_once_while_redis_is_gone_and_work_again_when_it_is_back() {
    let server = RedisServer::running().await;
    let redis = connected(&server.url(), patient()).await;
    let mut hints = redis.hints();
    redis.beat(WorkerId(7), LONG).await;
    assert_eq!(server.keys("*").await, ["milepost:hb:worker:7"]);
    server.kill().await;
    wait::until("the failure is noticed", || async { !redis.health().up }).await;
    assert_many_calls_are_fast(&redis).await;
    server.start().await;
    both(hints.as_mut()).await;
    assert!(redis.is_up_within(wait::LIMIT).await);
    redis.beat(WorkerId(7), LONG).await;
    redis.beat(WorkerId(8), LONG).await;
    redis.leave(WorkerId(7)).await;
    assert_eq!(server.keys("*").await, ["milepost:hb:worker:8"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_is_waited_for_once_and_not_again() {
    let server = RedisServer::running().await;
    let redis = connected(&server.url(), RedisOptions::default()).await;
    server.pause();
    assert!(!redis.announce_ready().await);
    assert!(redis.health().failures > 0);
    assert_many_calls_are_fast(&redis).await;
    wait::until("the failure is noticed", || async { !redis.health().up }).await;
    server.revive();
    wait::until("Redis is used again", || async { redis.announce_ready().await && redis.health().up }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_whose_answers_are_lost_counts_as_gone_until_they_come() {
    let server = RedisServer::running().await;
    let (proxy, url) = {
        let proxy = Proxy::before(server.address()).await;
        let url = format!("redis://{}", proxy.address());
        (proxy, url)
    };
    let redis = connected(&url, RedisOptions::default()).await;
    proxy.lose_replies(true);
    assert!(!redis.flag_stop(JobId::new(), Verb::Cancel).await);
    wait::until("the failure is noticed", || async { !redis.health().up }).await;
    proxy.lose_replies(false);
    wait::until("Redis is used again", || async { redis.flag_stop(JobId::new(), Verb::Cancel).await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_somebody_else_misuses_does_not_break_the_connection() {
    let server = RedisServer::running().await;
    let redis = connected(&server.url(), patient()).await;
    let job = JobId::new();
    let key = format!("milepost:lock:job:{job}");
    let mut theirs = server.connect().await;
    redis::cmd("LPUSH").arg(key).arg("x").exec_async(&mut theirs).await.unwrap();
    assert!(!redis.is_held_by_older(run(job, 2)).await);
    assert!(!redis.lock(&[run(job, 2)], LONG).await);
    assert_eq!(redis.health().failures, 2);
    assert!(redis.health().up && redis.announce_ready().await);
}

/// The permissions documented in docs/REDIS.md.
const RIGHTS: &str = "SETUSER milepost on >s3cret ~milepost:* &milepost:* -@all +get +set +del +exists +evalsha \
                      +script|load +publish +subscribe +ping";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_no_more_rights_than_are_needed_can_do_all() {
    let server = RedisServer::running().await;
    let mut owner = server.connect().await;
    let set_user: Vec<&str> = RIGHTS.split(' ').collect();
    redis::cmd("ACL").arg(&set_user).exec_async(&mut owner).await.unwrap();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0wner"]).exec_async(&mut owner).await.unwrap();
    let url = |account: &str| format!("redis://{account}@{}", server.address());
    connected(&url(":0wner"), patient()).await;
    let redis = connected(&url("milepost:s3cret"), patient()).await;
    let mut hints = redis.hints();
    let job = JobId::new();
    assert!(redis.flag_stop(job, Verb::Cancel).await && redis.announce_ready().await);
    both(hints.as_mut()).await;
    assert!(redis.lock(&[run(job, 1)], LONG).await, "the flag is found");
    assert!(redis.is_held_by_older(run(job, 2)).await);
    redis.unlock(&[run(job, 1)]).await;
    redis.beat(WorkerId(7), LONG).await;
    redis.leave(WorkerId(7)).await;
    let event = EventId::new();
    assert_eq!(redis.recall("billing", event).await, Remembered::Nothing);
    redis.remember("billing", event).await;
    assert_eq!(redis.recall("billing", event).await, Remembered::Done);
    redis.forget("billing", event).await;
    assert_eq!((redis.health().up, redis.health().failures), (true, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_refused_is_said_to_be_without_its_password() {
    let server = RedisServer::running().await;
    let mut owner = server.connect().await;
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0wner"]).exec_async(&mut owner).await.unwrap();
    for (account, words) in
        [(":s3cret@", "authentication failed"), ("ada:s3cret@", "authentication failed"), ("", "NOAUTH")]
    {
        let url = format!("redis://{account}{}", server.address());
        let redis = Redis::start(&url, patient()).unwrap();
        wait::until("the error is shown", || async { redis.trouble().contains(words) }).await;
        assert!(!redis.health().up && !redis.announce_ready().await);
        assert!(!redis.trouble().contains("s3cret"), "{}", redis.trouble());
    }
}

/// Asserts that many calls are fast, in a number for which waiting for each would take too long.
async fn assert_many_calls_are_fast(redis: &Redis) {
    let began = Instant::now();
    for _ in 0..200 {
        redis.beat(WorkerId(1), LONG).await;
        redis.lock(&[run(JobId::new(), 1)], LONG).await;
        assert!(!redis.is_held_by_older(run(JobId::new(), 2)).await);
        assert!(!redis.flag_stop(JobId::new(), Verb::Cancel).await);
    }
    assert!(began.elapsed() < wait::LIMIT, "800 calls took {:?}", began.elapsed());
}
