//! Tests of the Redis sink against a real server.

use crate::common;

use std::collections::BTreeMap;

use crate::common::{Reader, Received};
use async_trait::async_trait;
use milepost_relay::sink::Delivery;
use milepost_testkit::proxy::Proxy;
use milepost_testkit::redis::RedisServer;
use redis::streams::StreamRangeReply;

/// A stream for one test.
struct Stream {
    url: String,
    name: String,
}

impl Stream {
    fn at(url: String) -> Self {
        Self { url, name: format!("t{}:order", uuid::Uuid::now_v7().simple()) }
    }

    fn shared() -> Self {
        Self::at(common::shared("MILEPOST_TEST_REDIS"))
    }

    fn settings(&self, url: &str) -> String {
        let prefix = self.name.strip_suffix("order").unwrap();
        format!("type = \"redis\"\nurl = \"{url}\"\nstream = \"{prefix}{{aggregate_type}}\"\n")
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection = milepost_testkit::redis::connect(&self.url).await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }
}

#[async_trait]
impl Reader for Stream {
    async fn messages(&self) -> Vec<Received> {
        let entries: StreamRangeReply = self.ask(&["XRANGE", &self.name, "-", "+"]).await;
        let message = |entry: redis::streams::StreamId| {
            let fields = entry
                .map
                .iter()
                .map(|(name, value)| (name.clone(), redis::from_redis_value_ref(value).unwrap()));
            let mut fields: BTreeMap<String, String> = fields.collect();
            let body = fields.remove("data").unwrap().into_bytes();
            Received::new(self.name.clone(), "ce_", fields.into_iter(), body)
        };
        entries.ids.into_iter().map(message).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_as_they_are() {
    let stream = Stream::shared();
    let sink = common::open(&stream.settings(&stream.url));
    common::events_arrive_once_and_as_they_are(&*sink, &stream, |_| stream.name.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_events_of_one_call_arrive() {
    let stream = Stream::shared();
    let sink = common::open(&(stream.settings(&stream.url) + "timeout_ms = 120000"));
    common::two_thousand_events_of_one_call_arrive(&*sink, &stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_keeps_about_as_many_entries_as_are_wanted() {
    let stream = Stream::shared();
    let sink = common::open(&(stream.settings(&stream.url) + "entries_max = 100"));
    common::publish_all(&*sink, &common::events("order", 2_000)).await;
    let left = stream.messages().await.len();
    assert!((100..400).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_stream_is_no_stream_is_refused_and_the_others_arrive() {
    let stream = Stream::shared();
    let sink = common::open(&stream.settings(&stream.url));
    let other = stream.name.replace("order", "account");
    let () = stream.ask(&["SET", &other, "a string"]).await;
    let sent = [
        common::event("order", "1", "1"),
        common::event("account", "1", "1"),
        common::event("order", "2", "2"),
    ];
    let deliveries = sink.publish(&sent).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Acknowledged, Delivery::Refused { why }, Delivery::Acknowledged] if why.contains("WRONGTYPE")),
        "{deliveries:?}"
    );
    assert_eq!(stream.messages().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_is_used_again_when_it_is_back() {
    let server = RedisServer::running().await;
    let stream = Stream::at(server.url());
    let sink = common::open(&(stream.settings(&server.url()) + "timeout_ms = 10000"));
    common::publish_all(&*sink, &common::events("order", 10)).await;
    server.kill().await;
    common::nothing_is_acknowledged_while_it_is_gone(&*sink).await;
    server.start().await;
    common::until_it_works_again(&*sink).await;
    common::publish_all(&*sink, &common::events("order", 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_given_up_in_time_and_used_again() {
    let server = RedisServer::running().await;
    let stream = Stream::at(server.url());
    let sink = common::open(&(stream.settings(&server.url()) + "timeout_ms = 5000"));
    common::publish_all(&*sink, &common::events("order", 1)).await;
    server.pause();
    let events = common::events("order", 1_200);
    let published = tokio::time::timeout(milepost_testkit::wait::LIMIT, sink.publish(&events)).await;
    let deliveries = published.expect("timed out").unwrap();
    assert!(deliveries.iter().all(|delivery| matches!(delivery, Delivery::Unknown { .. })), "{deliveries:?}");
    assert_eq!(deliveries.len(), 500, "the others were not sent");
    server.revive();
    common::until_it_works_again(&*sink).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_full_or_a_replica_takes_nothing_until_it_can() {
    let server = RedisServer::running().await;
    let stream = Stream::at(server.url());
    let sink = common::open(&stream.settings(&server.url()));
    common::publish_all(&*sink, &common::events("order", 1)).await;
    for (words, back, told) in [
        (&["CONFIG", "SET", "maxmemory", "1"][..], &["CONFIG", "SET", "maxmemory", "0"][..], "OOM"),
        (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"], "READONLY"),
    ] {
        let () = stream.ask(words).await;
        let down = sink.publish(&common::events("order", 3)).await.unwrap_err();
        assert!(down.to_string().to_uppercase().contains(told), "{down}");
        let () = stream.ask(back).await;
        common::publish_all(&*sink, &common::events("order", 1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_a_server_refuses_once_it_is_full_use_up_no_attempt() {
    let server = RedisServer::running().await;
    let stream = Stream::at(server.url());
    let sink = common::open(&stream.settings(&server.url()));
    let memory: String = stream.ask(&["INFO", "memory"]).await;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let max = used.trim().parse::<u64>().unwrap() + 2_000_000;
    let () = stream.ask(&["CONFIG", "SET", "maxmemory", &max.to_string()]).await;
    loop {
        let events = common::events("order", 1_200);
        let deliveries = sink.publish(&events).await.expect("it became full between two calls");
        assert!(deliveries.iter().all(|delivery| *delivery == Delivery::Acknowledged), "{deliveries:?}");
        if deliveries.len() < events.len() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_answer_is_lost_is_unknown_and_published_again_it_is_there_twice() {
    let stream = Stream::shared();
    let proxy = Proxy::before(stream.url.replace("redis://", "")).await;
    let sink = common::open(&stream.settings(&format!("redis://{}", proxy.address())));
    // The hyphen occurs in the id of every entry.
    let lose = || proxy.lose_reply_with(b"-");
    let event = common::what_is_not_answered_is_unknown(&*sink, lose, || proxy.has_lost_it()).await;
    common::publish_all(&*sink, std::slice::from_ref(&event)).await;
    assert_eq!(stream.times().await[&event.id.to_string()], 2, "both deliveries have the same id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_missing_rights_are_told_without_secrets() {
    let server = RedisServer::running().await;
    let stream = Stream::at(server.url());
    let () = stream.ask(&["ACL", "SETUSER", "ada", "on", ">s3cret", "~*", "+@all", "-xadd"]).await;
    let why = common::trouble(&stream.settings(&format!("redis://ada:wr0ng@{}", server.address()))).await;
    assert!(
        why.contains(&server.address()) && why.to_lowercase().contains("auth") && !why.contains("wr0ng"),
        "{why}"
    );
    let sink = common::open(&stream.settings(&format!("redis://ada:s3cret@{}", server.address())));
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Refused { why }] if why.to_uppercase().contains("PERM")),
        "{deliveries:?}"
    );
    assert!(!format!("{sink:?}").contains("s3cret"), "{sink:?}");
    let why = common::trouble("type = \"redis\"\nurl = \"redis://ada:s3cret@c/s3cret\"").await;
    assert!(why.contains("`url`") && !why.contains("s3cret"), "{why}");
}
