//! Tests of the NATS sink against a real server.

use crate::common;

use crate::common::{Reader, Received};
use async_nats::jetstream::{self, stream};
use async_trait::async_trait;
use milepost_relay::sink::Delivery;
use milepost_testkit::nats::NatsServer;
use milepost_testkit::proxy::Proxy;

/// A stream for one test, for all subjects that start with its name.
struct Stream {
    url: String,
    name: String,
}

impl Stream {
    async fn make(url: &str, config: stream::Config) -> Self {
        let name = format!("t{}", uuid::Uuid::now_v7().simple());
        let config = stream::Config { name: name.clone(), subjects: vec![format!("{name}.>")], ..config };
        let stream = Self { url: url.to_owned(), name };
        stream.jetstream().await.create_stream(config).await.unwrap();
        stream
    }

    async fn shared() -> Self {
        Self::make(&common::shared("MILEPOST_TEST_NATS"), stream::Config::default()).await
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }

    fn settings(&self, url: &str) -> String {
        let name = &self.name;
        format!(
            "type = \"nats\"\nurl = \"{url}\"\nsubject = \"{name}.{{aggregate_type}}.{{aggregate_id}}.{{event_type}}\"\n"
        )
    }
}

#[async_trait]
impl Reader for Stream {
    async fn messages(&self) -> Vec<Received> {
        let mut stream = self.jetstream().await.get_stream(&self.name).await.unwrap();
        let count = stream.info().await.unwrap().state.messages;
        let mut all = Vec::new();
        for sequence in 1..=count {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let headers =
                message.headers.iter().map(|(name, values)| (name.to_string(), values[0].to_string()));
            all.push(Received::new(message.subject.to_string(), "ce-", headers, message.payload.to_vec()));
        }
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_as_they_are() {
    let stream = Stream::shared().await;
    let sink = common::open(&stream.settings(&stream.url));
    let key = |event: &milepost_core::event::Event| {
        let id = match event.aggregate.id.as_str() {
            "a b/ü.*>" => "a%20b/%C3%BC%2E%2A%3E",
            id => id,
        };
        format!("{}.order.{id}.order.paid", stream.name)
    };
    common::events_arrive_once_and_as_they_are(&*sink, &stream, key).await;
    let message = stream.messages().await.remove(0);
    assert_eq!(message.headers["Nats-Msg-Id"], message.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_events_of_one_call_arrive() {
    let stream = Stream::shared().await;
    let sink = common::open(&(stream.settings(&stream.url) + "timeout_ms = 120000"));
    common::two_thousand_events_of_one_call_arrive(&*sink, &stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_the_server_is_unacceptable_and_the_others_arrive() {
    let stream = Stream::shared().await;
    let sink = common::open(&stream.settings(&stream.url));
    common::what_is_too_large_is_unacceptable_and_the_others_arrive(&*sink, &stream, 1024 * 1024).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_the_stream_is_unacceptable_and_the_others_arrive() {
    let url = common::shared("MILEPOST_TEST_NATS");
    let stream = Stream::make(&url, stream::Config { max_message_size: 2_000, ..Default::default() }).await;
    let sink = common::open(&stream.settings(&url));
    let too_large = event_of(2_000);
    let deliveries = sink.publish(&[event_of(10), too_large]).await.unwrap();
    assert!(
        matches!(deliveries[..], [Delivery::Acknowledged, Delivery::Unacceptable { .. }]),
        "{deliveries:?}"
    );
}

fn event_of(bytes: usize) -> milepost_core::event::Event {
    common::event("order", bytes.to_string(), &format!("\"{}\"", "x".repeat(bytes)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_full_refuses() {
    let url = common::shared("MILEPOST_TEST_NATS");
    let config =
        stream::Config { max_messages: 1, discard: stream::DiscardPolicy::New, ..Default::default() };
    let stream = Stream::make(&url, config).await;
    let sink = common::open(&stream.settings(&url));
    common::publish_all(&*sink, &common::events("order", 1)).await;
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Refused { why }] if why.contains("maximum messages")),
        "{deliveries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_missing_is_told_with_what_to_make_and_made_on_request() {
    let url = common::shared("MILEPOST_TEST_NATS");
    let name = format!("t{}", uuid::Uuid::now_v7().simple());
    let settings = format!("type = \"nats\"\nurl = \"{url}\"\nsubject = \"{name}.{{event_type}}\"\n");
    let why = common::trouble(&settings).await;
    assert!(why.contains("no JetStream stream") && why.contains(&format!("--subjects '{name}.>'")), "{why}");
    let sink = common::open(&format!("{settings}create_stream = \"{name}\"\n"));
    let stream = Stream { url, name };
    common::two_thousand_events_of_one_call_arrive(&*sink, &stream).await;
    stream.jetstream().await.delete_stream(&stream.name).await.unwrap();
    sink.publish(&common::events("order", 1))
        .await
        .expect_err("the attempt that notices it makes the stream");
    common::publish_all(&*sink, &common::events("order", 1)).await;
    assert_eq!(stream.messages().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_without_a_stream_is_refused_and_the_others_arrive() {
    let stream = Stream::shared().await;
    let settings = format!("type = \"nats\"\nurl = \"{}\"\nsubject = \"{{aggregate_type}}.x\"\n", stream.url);
    let sink = common::open(&settings);
    let sent = [common::event(&stream.name, "1", "1"), common::event("nobody", "1", "1")];
    let deliveries = sink.publish(&sent).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Acknowledged, Delivery::Refused { why }] if why.contains("nobody.x")),
        "{deliveries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_is_used_again_when_it_is_back() {
    let server = NatsServer::running(&[]).await;
    let stream = Stream::make(&server.url(), stream::Config::default()).await;
    let sink = common::open(&(stream.settings(&server.url()) + "timeout_ms = 8000"));
    let sent = common::events("order", 10);
    common::publish_all(&*sink, &sent).await;
    server.kill().await;
    common::nothing_is_acknowledged_while_it_is_gone(&*sink).await;
    server.start().await;
    common::until_it_works_again(&*sink).await;
    let times = stream.times().await;
    assert!(common::ids(&sent).iter().all(|id| times[id] == 1), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_answer_is_lost_is_unknown_and_published_again_it_is_there_once() {
    let stream = Stream::shared().await;
    let proxy = Proxy::before(stream.url.replace("nats://", "")).await;
    let sink = common::open(&stream.settings(&format!("nats://{}", proxy.address())));
    let lose = || proxy.lose_reply_with(b"\"seq\":");
    let event = common::what_is_not_answered_is_unknown(&*sink, lose, || proxy.has_lost_it()).await;
    assert_eq!(stream.times().await[&event.id.to_string()], 1, "the stream has the message");
    common::publish_all(&*sink, std::slice::from_ref(&event)).await;
    assert_eq!(stream.times().await[&event.id.to_string()], 1, "the stream recognized the message by its id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_without_it() {
    let server = NatsServer::running(&["--user", "ada", "--pass", "s3 cret"]).await;
    let url = |password: &str| format!("nats://ada:{password}@{}", server.address());
    let stream = |url: String| {
        format!("type = \"nats\"\nurl = \"{url}\"\nsubject = \"a.{{event_type}}\"\ncreate_stream = \"A\"\n")
    };
    let why = common::trouble(&stream(url("wr0ng"))).await;
    assert!(why.contains("rejects the user") && why.contains(&server.address()), "{why}");
    assert!(!why.contains("wr0ng") && !why.contains("s3"), "{why}");
    common::publish_all(&*common::open(&stream(url("s3%20cret"))), &common::events("order", 1)).await;
}
