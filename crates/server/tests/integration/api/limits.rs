//! Tests of slow, silent and demanding clients, over raw sockets.

use std::time::{Duration, Instant};

use futures::future::join_all;
use milepost_core::limit::Rate;
use milepost_core::token::Role;
use milepost_server::{Limits, Options};
use milepost_testkit::wait;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::place::{Place, on_sqlite};

/// Longer than any step should take.
const LONG: Duration = wait::LIMIT;
const SHORT: Duration = Duration::from_millis(300);
/// Long enough for a response, however busy the machine is.
const SOME: Duration = Duration::from_secs(5);

async fn serve(limits: Limits) -> (tempfile::TempDir, Place) {
    let (folder, store) = on_sqlite().await;
    (folder, Place::serve_with(store, Options { limits, ..Options::default() }).await)
}

async fn connect(place: &Place) -> TcpStream {
    TcpStream::connect(place.address()).await.unwrap()
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset also closes a connection.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn get(stream: &mut TcpStream, place: &Place, headers: &str) -> String {
    ask(stream, place, "/healthz", headers).await
}

async fn ask(stream: &mut TcpStream, place: &Place, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", place.address());
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

#[tokio::test]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let (_folder, place) = serve(Limits { header_time: SHORT, ..Limits::default() }).await;
    let began = Instant::now();
    rest(&mut connect(&place).await).await;
    assert!(began.elapsed() >= SHORT, "the connection was closed too early");
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_are_not_waited_for() {
    let (_folder, place) = serve(Limits { header_time: SHORT, ..Limits::default() }).await;
    let mut stream = connect(&place).await;
    let (mut reader, mut writer) = stream.split();
    let drip = async {
        writer.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ").await.unwrap();
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut answer = Vec::new();
    let ended = async { reader.read_to_end(&mut answer).await };
    tokio::select! {
        () = drip => {}
        _ = ended => {}
        () = tokio::time::sleep(LONG) => panic!("the server does not close the connection"),
    }
}

#[tokio::test]
async fn a_connection_that_is_kept_open_for_nothing_is_ended() {
    let (_folder, place) = serve(Limits { header_time: SOME, ..Limits::default() }).await;
    let mut stream = connect(&place).await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut stream).await.contains("200 OK"));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let (_folder, place) = serve(Limits { request_time: SHORT, ..Limits::default() }).await;
    let mut stream = connect(&place).await;
    let request = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        place.address()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"), "{answer}");
}

#[tokio::test]
async fn headers_that_are_too_large_or_too_many_are_refused() {
    let (_folder, place) = serve(Limits::default()).await;
    let large = format!("X-Large: {}\r\n", "x".repeat(64 * 1024));
    let many = (0..200).map(|number| format!("X-{number}: y\r\n")).collect::<String>();
    for headers in [large, many] {
        let answer = get(&mut connect(&place).await, &place, &headers).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let some = format!("X-Large: {}\r\n", "x".repeat(16 * 1024));
    assert!(get(&mut connect(&place).await, &place, &some).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_not_waited_for() {
    let (_folder, place) = serve(Limits { write_time: SHORT, ..Limits::default() }).await;
    let mut stream = connect(&place).await;
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
    let ask_on = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(LONG, ask_on).await.unwrap();
}

#[tokio::test]
async fn idle_connections_make_room_when_all_places_are_taken() {
    // The time limit for headers is longer than the test.
    let header_time = LONG * 10;
    let (_folder, place) = serve(Limits { connections: 2, header_time, ..Limits::default() }).await;
    let mut silent = connect(&place).await;
    let mut half = connect(&place).await;
    half.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    for _ in 0..3 {
        let answer = get(&mut connect(&place).await, &place, "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    rest(&mut silent).await;
}

#[tokio::test]
async fn a_connection_with_a_request_in_progress_keeps_its_place() {
    let (_folder, place) = serve(Limits { connections: 1, ..Limits::default() }).await;
    let mut watching = connect(&place).await;
    let request = format!("GET /v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
    watching.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    watching.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut newcomer = connect(&place).await;
    let mut answer = Box::pin(ask(&mut newcomer, &place, "/v1/queues", ""));
    let answered = tokio::time::timeout(Duration::from_secs(1), &mut answer).await;
    assert!(answered.is_err(), "{answered:?}");
    drop(watching);
    let answer = answer.await;
    assert!(answer.starts_with("HTTP/1.1 200"), "it waited for a place: {answer}");
    assert!(get(&mut connect(&place).await, &place, "").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn probes_are_answered_when_all_places_are_taken() {
    let (_folder, place) = serve(Limits { connections: 1, ..Limits::default() }).await;
    let mut watching = connect(&place).await;
    let request = format!("GET /v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
    watching.write_all(request.as_bytes()).await.unwrap();
    watching.read_exact(&mut [0; 12]).await.unwrap();
    // More connections than spare seats: those that have waited longest are refused.
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(&place).await;
        let request = format!("GET /v1/queues HTTP/1.1\r\nHost: {}\r\n\r\n", place.address());
        stream.write_all(request.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    for path in ["/healthz", "/readyz"] {
        let answer = ask(&mut connect(&place).await, &place, path, "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let refused = rest(&mut waiting[0]).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_connections"), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("connection: close"), "{refused}");
    drop(watching);
    let answer = rest(waiting.last_mut().unwrap()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_token_that_asks_too_often_is_told_when_to_ask_again_and_others_go_on() {
    let (_folder, place) = serve(Limits { rate: Some(Rate::new(0.001, 2)), ..Limits::default() }).await;
    let (one, other) = (place.token(Role::Viewer).await, place.token(Role::Admin).await);
    let ask = async |token: &milepost_core::token::Secret| {
        place.request(Method::GET, "/v1/queues").bearer_auth(token.reveal()).send().await.unwrap()
    };
    for _ in 0..2 {
        assert_eq!(ask(&one).await.status(), StatusCode::OK);
    }
    let refused = ask(&one).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((800..=1001).contains(&wait_s), "{wait_s}");
    assert_eq!(ask(&other).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn somebody_who_shows_unknown_tokens_is_not_let_to_the_store_for_ever() {
    let (_folder, place) = serve(Limits { unknown_tokens: Rate::new(0.001, 20), ..Limits::default() }).await;
    place.token(Role::Viewer).await;
    let guess = async || {
        let request =
            place.request(Method::GET, "/v1/queues").bearer_auth(crate::api::place::secret().reveal());
        place.send(request).await.code().to_owned()
    };
    let codes = join_all((0..30).map(|_| guess())).await;
    let count = |code: &str| codes.iter().filter(|its| *its == code).count();
    assert_eq!((count("unknown_token"), count("too_many_requests")), (20, 10), "{codes:?}");
}

#[tokio::test]
async fn requests_of_a_client_under_way_are_bounded() {
    let (_folder, place) = serve(Limits { in_flight: 1, ..Limits::default() }).await;
    let worker = place.post("/v1/workers", &json!({"name": "w", "queues": ["q"], "kinds": ["k"]})).await;
    let path = format!("/v1/workers/{}/claim", worker.body["id"]);
    let wait = json!({"queues": ["q"], "kinds": ["k"], "wait_ms": 20_000});
    // Either of the two may arrive first; the other one is refused and retries.
    let waits = async {
        loop {
            let answer = place.post(&path, &wait).await;
            if answer.status != StatusCode::TOO_MANY_REQUESTS {
                break answer;
            }
        }
    };
    let refused = async {
        loop {
            let answer = place.get("/v1/queues").await;
            if answer.status == StatusCode::TOO_MANY_REQUESTS {
                for probe in ["/healthz", "/readyz"] {
                    assert_eq!(place.get(probe).await.status, StatusCode::OK, "probes are answered: {probe}");
                }
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = waits => panic!("{answer:?}"),
        answer = refused => assert_eq!(answer.code(), "too_many_in_flight"),
        () = tokio::time::sleep(LONG) => panic!("no client was refused"),
    }
    // The waiting request was aborted, which freed its place.
    let free = async || place.get("/v1/queues").await.status == StatusCode::OK;
    wait::until("a place is free again", free).await;
}

#[tokio::test]
async fn unfinished_sign_in_forms_keep_no_connections() {
    let (_folder, place) = serve(Limits { connections: 50, ..Limits::default() }).await;
    let unfinished = |address: &str| {
        let headers = format!("Host: {address}\r\nOrigin: http://{address}\r\nContent-Length: 100");
        format!("POST /sign-in HTTP/1.1\r\n{headers}\r\n\r\ntoken=")
    };
    let mut forms = Vec::new();
    for _ in 0..50 {
        let mut stream = connect(&place).await;
        stream.write_all(unfinished(place.address()).as_bytes()).await.unwrap();
        forms.push(stream);
    }
    wait::until("the forms beyond the limit are refused", || async {
        let answer = ask(&mut connect(&place).await, &place, "/v1/queues", "").await;
        answer.starts_with("HTTP/1.1 401") || answer.starts_with("HTTP/1.1 200")
    })
    .await;
    let mut refused = 0;
    for mut stream in forms {
        let answer = rest(&mut stream).await;
        refused += usize::from(answer.contains("too_many_in_flight"));
        assert!(answer.contains("too_many_in_flight") || answer.contains("request_timeout"), "{answer}");
    }
    assert_eq!(refused, 50 - 8);
}

#[tokio::test]
async fn a_page_of_large_events_ends_early_and_leaves_none_out() {
    let (_folder, place) = serve(Limits::default()).await;
    let large = "x".repeat(900_000);
    let event = |id: usize, payload: &str| json!({"aggregate_type": "order", "aggregate_id": id.to_string(), "event_type": "t", "payload": payload});
    let some = |payload: &str, ids: std::ops::Range<usize>| json!({"events": ids.map(|id| event(id, payload)).collect::<Vec<_>>()});
    for events in [some("small", 0..100), some(&large, 100..106), some(&large, 106..112)] {
        let answer = place.post("/v1/events", &events).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }
    let (mut seen, mut sizes, mut path) = (Vec::new(), Vec::new(), "/v1/events?limit=1000".to_owned());
    loop {
        let page = place.get(&path).await.body;
        sizes.push(page["items"].as_array().unwrap().len());
        seen.extend(page["items"].as_array().unwrap().iter().map(|event| event["pos"].as_i64().unwrap()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/events?limit=1000&cursor={cursor}");
    }
    assert!(seen.is_sorted_by(|one, next| one > next), "newest first, each once: {seen:?}");
    assert_eq!((seen.len(), sizes.len()), (112, 3), "{sizes:?}");
}

#[tokio::test]
async fn a_response_beyond_the_limit_of_the_server_is_refused_and_a_smaller_one_is_not() {
    let limits = Limits { body_bytes_of_all: 3_000_000, ..Limits::default() };
    let (_folder, place) = serve(limits).await;
    let event = json!({"aggregate_type": "order", "aggregate_id": "1", "event_type": "t", "payload": "x".repeat(1_000_000)});
    for _ in 0..4 {
        let answer = place.post("/v1/events", &json!({ "events": [event] })).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }
    let refused = place.get("/v1/events").await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("too_many_bytes"))
    );
    for _ in 0..5 {
        let answer = place.get("/v1/events?limit=1").await;
        assert_eq!(answer.status, StatusCode::OK, "what was sent no longer counts");
    }
}
