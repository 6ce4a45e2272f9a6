//! Tests of the memory limit for request bodies that are being read.

use milepost_core::token::{Role, Secret};
use milepost_server::{Limits, Options};
use milepost_testkit::wait;
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::place::{Place, on_sqlite};

const SOME: usize = 600 * 1024;
const LIMITS: (usize, usize) = (1024 * 1024, 2 * 1024 * 1024);

async fn serve() -> (tempfile::TempDir, Place) {
    let (folder, store) = on_sqlite().await;
    let (body_bytes_of_client, body_bytes_of_all) = LIMITS;
    let limits = Limits { body_bytes_of_client, body_bytes_of_all, ..Limits::default() };
    (folder, Place::serve_with(store, Options { limits, ..Options::default() }).await)
}

/// Sends a request with an incomplete body.
async fn unfinished(place: &Place, token: Option<&Secret>) -> TcpStream {
    let mut stream = TcpStream::connect(place.address()).await.unwrap();
    let shows =
        token.map(|token| format!("Authorization: Bearer {}\r\n", token.reveal())).unwrap_or_default();
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: {}\r\n{shows}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        place.address(),
        2 * SOME
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may respond before everything is sent.
    let _ = stream.write_all(&vec![b' '; SOME]).await;
    stream
}

/// Returns the response of the only refused request.
async fn refused(mut streams: Vec<TcpStream>) -> (String, Vec<TcpStream>) {
    let read = streams.iter_mut().map(|stream| {
        Box::pin(async move {
            let mut answer = vec![0; 4096];
            let bytes = stream.read(&mut answer).await.unwrap_or_default();
            String::from_utf8_lossy(&answer[..bytes]).into_owned()
        })
    });
    let (answer, _, others) = tokio::time::timeout(wait::LIMIT, futures::future::select_all(read))
        .await
        .expect("one request is refused");
    drop(others);
    (answer, streams)
}

#[tokio::test]
async fn a_request_that_is_refused_before_its_body_is_read_ends_its_connection_and_says_so() {
    let (_folder, place) = serve().await;
    let answer = async |path: &str, kind: &str| {
        let mut stream = TcpStream::connect(place.address()).await.unwrap();
        let host = place.address();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: 7\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(b"{\"a\":1}").await.unwrap();
        let mut answer = vec![0; 4096];
        let bytes = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..bytes]).to_lowercase()
    };
    for (path, kind) in [("/v1/jobs", "text/plain"), ("/v1/jobs/none/retry", "application/json")] {
        let said = answer(path, kind).await;
        assert!(said.starts_with("http/1.1 4") && said.contains("connection: close"), "{said}");
    }
    let said = answer("/v1/jobs", "application/json").await;
    assert!(said.starts_with("http/1.1 4") && !said.contains("connection: close"), "it was read: {said}");
}

#[tokio::test]
async fn bodies_of_one_client_take_its_share_and_no_more() {
    let (_folder, place) = serve().await;
    let (one, other) = (place.token(Role::Operator).await, place.token(Role::Admin).await);
    let asked = async || place.get("/v1/queues").await.status == StatusCode::UNAUTHORIZED;
    wait::until("tokens are required", asked).await;
    let streams = vec![unfinished(&place, Some(&one)).await, unfinished(&place, Some(&one)).await];
    let (answer, streams) = refused(streams).await;
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("too_many_bytes"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("retry-after: 1"), "{answer}");
    let create = async |token: &Secret| {
        let job = json!({"kind": "k", "payload": "x".repeat(SOME)});
        place
            .send(place.request(reqwest::Method::POST, "/v1/jobs").bearer_auth(token.reveal()).json(&job))
            .await
            .status
    };
    assert_eq!(create(&other).await, StatusCode::CREATED, "other clients are not affected");
    drop(streams);
    wait::until("the client's share is available again", async || create(&one).await == StatusCode::CREATED)
        .await;
}

#[tokio::test]
async fn bodies_of_all_take_what_the_server_has_and_no_more() {
    let (_folder, place) = serve().await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(unfinished(&place, None).await);
    }
    let (answer, streams) = refused(streams).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("too_many_bytes"), "{answer}");
    drop(streams);
    let create =
        async || place.post("/v1/jobs", &json!({"kind": "k", "payload": "x".repeat(SOME)})).await.status;
    wait::until("the server's limit is available again", async || create().await == StatusCode::CREATED)
        .await;
}
