//! Tests of the webhook sink against a real receiver.

mod guarded;
mod server;

use crate::common;
use std::time::Duration;

use crate::common::{Reader, Received};
use async_trait::async_trait;
use milepost_core::event::Event;
use milepost_relay::sink::{Delivery, Sink};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::wait;
use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use server::{Reply, Request, Server};
use standardwebhooks::Webhook;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW_SECRET: &str = "whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3";

/// Returns the settings of a webhook with this URL; the networks of this machine are allowed.
fn settings(url: &str) -> String {
    format!(
        "type = \"webhook\"\nurl = \"{url}\"\nsecrets = [\"{SECRET}\"]\nallow_networks = [\"127.0.0.0/8\"]\n"
    )
}

/// Publishes events and returns their deliveries; fails if they do not arrive within the time limit of tests.
async fn in_time(sink: &dyn Sink, events: &[Event]) -> Vec<Delivery> {
    let published = tokio::time::timeout(wait::LIMIT, sink.publish(events)).await;
    published.expect("timed out").unwrap()
}

/// Returns whether a receiver with this secret accepts the signature of a request.
fn is_signed(request: &Request, secret: &str) -> bool {
    let header = |(name, value): &(String, String)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let headers: HeaderMap = request.headers.iter().map(header).collect();
    Webhook::new(secret).unwrap().verify(&request.body, &headers).is_ok()
}

#[async_trait]
impl Reader for Server {
    async fn messages(&self) -> Vec<Received> {
        let message = |request: Request| {
            assert!(is_signed(&request, SECRET));
            let headers = request.headers.into_iter().map(|(name, value)| {
                let decoded =
                    name.starts_with("ce-").then(|| percent_decode_str(&value).decode_utf8().unwrap().into());
                (name, decoded.unwrap_or(value))
            });
            let received = Received::new(request.path, "ce-", headers, request.body);
            assert_eq!(received.headers["webhook-id"], received.id());
            received
        };
        self.taken().into_iter().map(message).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_as_they_are() {
    let server = Server::taking_all().await;
    let sink = common::open(&settings(&server.url()));
    let key = |_: &_| "/hooks/milepost".to_owned();
    common::events_arrive_once_and_as_they_are(&*sink, &server, key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_events_of_one_call_arrive() {
    let server = Server::taking_all().await;
    let sink = common::open(&(settings(&server.url()) + "concurrency = 32\ntimeout_ms = 120000"));
    common::two_thousand_events_of_one_call_arrive(&*sink, &server).await;
    // About one connection for each concurrent request.
    assert!(server.connections() < 200, "too many connections: {}", server.connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_unacceptable_and_the_others_arrive() {
    let server = Server::answering(|request, _| match request.body.len() {
        ..1_000 => Reply::status("200 OK"),
        _ => Reply::status("413 Content Too Large"),
    });
    let server = server.await;
    let sink = common::open(&settings(&server.url()));
    common::what_is_too_large_is_unacceptable_and_the_others_arrive(&*sink, &server, 1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_secret_has_a_signature_of_its_own_while_keys_are_changed() {
    let server = Server::taking_all().await;
    let one = format!("secrets = [\"{SECRET}\"]");
    let both = settings(&server.url()).replace(&one, &format!("secrets = [\"{NEW_SECRET}\", \"{SECRET}\"]"));
    common::publish_all(&*common::open(&both), &common::events("order", 1)).await;
    let request = server.requests().remove(0);
    assert!(is_signed(&request, SECRET) && is_signed(&request, NEW_SECRET));
    assert!(!is_signed(&request, "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90"));
    let forged = Request { body: b"{}".to_vec(), ..request };
    assert!(!is_signed(&forged, SECRET) && !is_signed(&forged, NEW_SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_for_good_is_not_asked_again_in_the_call() {
    let server =
        Server::answering(|_, _| Reply::Says("410 Gone\r\n".to_owned(), "unsubscribed".to_owned())).await;
    let sink = common::open(&(settings(&server.url()) + "concurrency = 4"));
    let down = sink.publish(&common::events("order", 100)).await.unwrap_err();
    assert!(down.for_good && down.why.contains("410") && down.why.contains("unsubscribed"), "{down:?}");
    assert!(server.requests().len() <= 4, "{}", server.requests().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_wants_to_be_left_alone_is() {
    let dates = "Retry-After: Sun, 01 Mar 2026 12:10:00 GMT\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\n";
    for (head, seconds) in [
        ("429 Too Many Requests\r\nRetry-After: 1200\r\n".to_owned(), 1200),
        (format!("503 Service Unavailable\r\n{dates}"), 600),
    ] {
        let server = Server::answering(move |_, _| Reply::Says(head.clone(), String::new())).await;
        let sink = common::open(&(settings(&server.url()) + "concurrency = 1"));
        for _ in 0..2 {
            let down = sink.publish(&common::events("order", 3)).await.unwrap_err();
            let wait = down.retry_after.unwrap();
            let asked = Duration::from_secs(seconds);
            assert!(!down.for_good && wait <= asked && wait > asked - Duration::from_secs(300), "{down:?}");
        }
        assert_eq!(server.requests().len(), 1, "no request is sent before the requested pause has passed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_used_again_after_its_rest_and_what_it_took_before_stays_acknowledged() {
    let server = Server::answering(|_, place| match place {
        2 => Reply::status("429 Too Many Requests\r\nRetry-After: 10"),
        _ => Reply::status("204 No Content"),
    })
    .await;
    let sink = common::open(&(settings(&server.url()) + "concurrency = 1"));
    let deliveries = sink.publish(&common::events("order", 5)).await.unwrap();
    assert_eq!(deliveries, [Delivery::Acknowledged, Delivery::Acknowledged]);
    let down = sink.publish(&common::events("order", 1)).await.unwrap_err();
    assert!(!down.for_good && down.retry_after.is_some(), "{down:?}");
    assert_eq!(server.requests().len(), 3);
    common::until_it_works_again(&*sink).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_refuses_is_told_in_one_short_line() {
    for (status, told) in [
        ("400 Bad Request", "400"),
        ("401 Unauthorized", "401"),
        ("404 Not Found", "404"),
        ("408 Request Timeout", "408"),
        ("500 Internal Server Error", "500"),
        ("502 Bad Gateway", "502"),
    ] {
        let words = format!("no luck\r\n\u{1b}[31m\u{0}{}", "x".repeat(5_000));
        let server = Server::answering(move |_, _| Reply::Says(format!("{status}\r\n"), words.clone())).await;
        let deliveries =
            common::open(&settings(&server.url())).publish(&common::events("order", 1)).await.unwrap();
        let [Delivery::Refused { why }] = &deliveries[..] else { panic!("{deliveries:?}") };
        assert!(why.contains(told) && why.contains("no luck"), "{why}");
        assert!(why.len() < 500 && !why.contains(char::is_control), "{why:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_not_read_to_its_end() {
    for status in ["200 OK", "500 Internal Server Error"] {
        let server = Server::answering(move |_, _| Reply::NeverEnds(format!("{status}\r\n"))).await;
        // Without the limit, the sink would read the response until this timeout.
        let sink = common::open(&(settings(&server.url()) + "timeout_ms = 600000"));
        let deliveries = in_time(&*sink, &common::events("order", 1)).await;
        assert_eq!(deliveries == [Delivery::Acknowledged], status == "200 OK", "{deliveries:?}");
        wait::until("the connection is dropped", || async { server.hung_up_on() == 1 }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_answered_in_time_or_at_all_is_unknown() {
    let server = Server::answering(|_, place| if place == 0 { Reply::Breaks } else { Reply::Hangs }).await;
    let sink = common::open(&(settings(&server.url()) + "timeout_ms = 8000\nconcurrency = 2"));
    let deliveries = in_time(&*sink, &common::events("order", 5)).await;
    assert!(deliveries.iter().all(|delivery| matches!(delivery, Delivery::Unknown { .. })), "{deliveries:?}");
    // The hanging requests occupied both places until the timeout; the one that broke immediately freed its place for a third request.
    assert_eq!((deliveries.len(), server.requests().len()), (3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_was_no_time_for_is_not_sent_and_what_was_sent_has_its_own_time() {
    let later = |_: &Request, _| Reply::SaysLater(Duration::from_secs(1), "204 No Content\r\n".to_owned());
    let server = Server::answering(later).await;
    let sink = common::open(&(settings(&server.url()) + "timeout_ms = 8000\nconcurrency = 2"));
    let deliveries = sink.publish(&common::events("order", 100)).await.unwrap();
    assert_eq!(deliveries, vec![Delivery::Acknowledged; server.requests().len()]);
    assert!((2..100).contains(&deliveries.len()), "{}", deliveries.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_answer_is_lost_is_unknown_and_published_again_it_is_there_twice() {
    let server = Server::taking_all().await;
    let proxy = Proxy::before(format!("127.0.0.1:{}", server.port)).await;
    let sink = common::open(&settings(&format!("http://{}/", proxy.address())));
    let lose = || proxy.lose_reply_with(b"204");
    let event = common::what_is_not_answered_is_unknown(&*sink, lose, || proxy.has_lost_it()).await;
    common::publish_all(&*sink, std::slice::from_ref(&event)).await;
    assert_eq!(server.times().await[&event.id.to_string()], 2, "both deliveries have the same id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_used_again_when_it_is_back() {
    let server = Server::taking_all().await;
    let proxy = Proxy::before(format!("127.0.0.1:{}", server.port)).await;
    let sink = common::open(&settings(&format!("http://{}/", proxy.address())));
    common::publish_all(&*sink, &common::events("order", 10)).await;
    proxy.shut(true);
    // Connections are opened and then closed, so the result is unknown.
    let deliveries = sink.publish(&common::events("order", 3)).await.unwrap();
    assert!(deliveries.iter().all(|delivery| matches!(delivery, Delivery::Unknown { .. })), "{deliveries:?}");
    proxy.shut(false);
    common::until_it_works_again(&*sink).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_the_address_and_a_name_that_is_none_are_told() {
    let why = common::trouble(&settings("http://ada:s3cret@127.0.0.1:1/s3cret?s3cret")).await;
    assert!(
        why.contains("http://127.0.0.1:1") && why.contains("refused") && !why.contains("s3cret"),
        "{why}"
    );
    let why = common::trouble(&settings("https://ada:s3cret@nowhere.invalid/s3cret")).await;
    assert!(why.contains("https://nowhere.invalid") && !why.contains("s3cret"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_requests_are_under_way_at_once() {
    let later =
        |_: &Request, _| Reply::SaysLater(Duration::from_millis(200), "204 No Content\r\n".to_owned());
    let server = Server::answering(later).await;
    let sink = common::open(&(settings(&server.url()) + "concurrency = 3\ntimeout_ms = 60000"));
    common::publish_all(&*sink, &common::events("order", 30)).await;
    assert_eq!(server.under_way_max(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_be_used_are_told_without_secrets() {
    let good = settings("https://shop.example/s3cret");
    for (settings, told) in [
        (good.replace("https://shop", "ftp://shop"), "https://"),
        (good.replace("https://shop.example/s3cret", "s3cret"), "https://HOST"),
        (good.replace(SECRET, "s3cret"), "number 1"),
        (good.replace(&format!("\"{SECRET}\""), ""), "openssl rand"),
        (good.replace("127.0.0.0/8", "10.0.0.1"), "10.1.2.3/32"),
        (good.replace("127.0.0.0/8", "10.0.0.1/8"), "10.0.0.0/8"),
        (good.clone() + "concurrency = 0", "`concurrency`"),
        (good + "timeout_ms = 0", "`timeout_ms`"),
    ] {
        let why = common::trouble(&settings).await;
        assert!(why.contains(told) && !why.contains("s3cret"), "{settings}: {why}");
    }
}
