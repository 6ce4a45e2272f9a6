//! Secrets in the settings of a call appear in no log and no message, at any log level.

use crate::support;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::support::Stage;
use crate::support::server::Server;
use milepost_core::secrets::Secrets;
use milepost_executors::exec::ExecConfig;
use milepost_executors::http::HttpConfig;
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_urls_are_not_told() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let server = Server::start().await;
    for path in ["/status/500", "/status/302?location=/s3cret", "/reset", "/garbage", "/text"] {
        let headers = BTreeMap::from([("X-Token".to_owned(), "Bearer s3cret".to_owned())]);
        let url = format!("{}{path}", server.url.replace("http://", "http://ada:s3cret@"));
        let stage = Stage::http(HttpConfig { headers, ..support::local(url) }).await;
        let end = stage.first_end().await;
        assert!(!format!("{end:?}").contains("s3cret"), "{end:?}");
    }
    assert_eq!(server.requests()[0].header("x-token"), Some("Bearer s3cret"), "the header was sent");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.is_empty(), "the log is empty");
    let told: Vec<&str> = log.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(told.is_empty(), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_was_told_is_not_kept_when_it_says_it_again() {
    let server = Server::start().await;
    let headers = || BTreeMap::from([("X-Token".to_owned(), "Bearer s3cret-of-the-shop".to_owned())]);
    let told =
        |path: &str| HttpConfig { headers: headers(), ..support::local(format!("{}{path}", server.url)) };
    let stage = Stage::http(told("/told")).await;
    assert_eq!(stage.result(&Value::Null).await, Some(json!({ "told": "[secret]" })));
    let end = Stage::http(told("/told-refusal")).await.first_end().await;
    let message = end.error_message.unwrap();
    assert!(message.ends_with("I do not know [secret]"), "{message}");
    let url = format!("{}/refused/hook-4f9a27c1?key=k3y-of-the-shop", server.url);
    let end = Stage::http(support::local(url)).await.first_end().await;
    let message = end.error_message.unwrap();
    assert!(message.ends_with("no such address: /[secret]?[secret]"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_was_told_is_not_kept_when_it_says_it_again() {
    let script = |text: &str| {
        let mut config = ExecConfig::of("/bin/sh");
        config.args = vec!["-c".to_owned(), text.to_owned()];
        config.env = BTreeMap::from([("TOKEN".to_owned(), "s3cret-of-the-shop".to_owned())]);
        config.secrets = Secrets::new(["s3cret-of-the-shop".to_owned()]);
        config
    };
    let stage = Stage::exec(script("echo MILEPOST_PROGRESS 1/2 with $TOKEN; echo it was $TOKEN")).await;
    assert_eq!(stage.result(&Value::Null).await, Some(json!("it was [secret]")));
    let end = Stage::exec(script("echo $TOKEN is wrong >&2; exit 3")).await.first_end().await;
    let message = end.error_message.unwrap();
    assert!(message.ends_with("\n[secret] is wrong"), "{message}");
}
