//! The HTTP throttle probe, against a real server.

use crate::support::server::Server;
use milepost::bulk::Throttle;
use milepost_executors::http::HttpProbe;

async fn holds(server: &Server, path: &str) -> Option<String> {
    HttpProbe::new(&format!("{}{path}", server.url)).unwrap().holds().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_answer_of_success_lets_go_on() {
    let server = Server::start().await;
    assert_eq!(holds(&server, "/status/204").await, None);
    let url = &server.url;
    assert_eq!(
        holds(&server, "/status/503?token=secret").await,
        Some(format!("http probe: {url} answered 503 Service Unavailable"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_holds_and_repeats_no_secret() {
    let probe = HttpProbe::new("http://127.0.0.1:1/secret").unwrap();
    let why = probe.holds().await.unwrap();
    assert!(why.starts_with("http probe: http://127.0.0.1:1 does not answer: "), "{why}");
    assert!(!why.contains("secret"), "{why}");
    assert!(HttpProbe::new("ftp://x").is_err());
}
