//! What clients of brokers log, down to their traces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::io;
use std::sync::{Arc, Mutex};

use milepost_testkit::nats::NatsServer;
use milepost_testkit::redis::RedisServer;

/// All that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_in_no_log_line() {
    let log = Log::default();
    let writer = log.clone();
    let writer = move || writer.clone();
    tracing_subscriber::fmt().with_env_filter("trace").with_ansi(false).with_writer(writer).init();
    let nats = NatsServer::running(&["--user", "ada", "--pass", "s3cret"]).await;
    let redis = RedisServer::running().await;
    let rabbitmq = common::shared("MILEPOST_TEST_RABBITMQ");
    let (_, rabbitmq) = rabbitmq.split_once('@').unwrap();
    for settings in [
        format!("type = \"nats\"\nurl = \"nats://ada:s3cret@{}\"\ncreate_stream = \"A\"", nats.address()),
        format!("type = \"redis\"\nurl = \"redis://ada:s3cret@{}\"", redis.address()),
        format!("type = \"rabbitmq\"\nurl = \"amqp://ada:s3cret@{rabbitmq}\""),
    ] {
        let _ = common::open(&settings).publish(&common::events("order", 1)).await;
    }
    let text = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(text.contains("async_nats") && text.contains("lapin"), "{text}");
    let told: Vec<_> = text.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(told.is_empty(), "{told:#?}");
}
