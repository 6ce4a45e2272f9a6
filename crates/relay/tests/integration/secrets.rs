//! Checks that brokers' clients log no secrets, not even at trace level.

use crate::common;

use std::io;
use std::sync::{Arc, Mutex};

use milepost_testkit::nats::NatsServer;
use milepost_testkit::redis::RedisServer;

/// Credentials for Kafka, and all debug output of librdkafka.
#[cfg(feature = "kafka")]
const SASL: &str = "properties = { \"security.protocol\" = \"sasl_plaintext\", \"sasl.mechanisms\" = \"PLAIN\", \
    \"sasl.username\" = \"ada\", \"sasl.password\" = \"s3cret\", \"debug\" = \"all\" }";
/// A webhook secret; the network of this machine is allowed.
const SIGNED: &str =
    "secrets = [\"whsec_s3cretAAAAAAAAAAAAAAAAAAAAAAAAAA\"]\nallow_networks = [\"127.0.0.0/8\"]";

/// Everything that was logged.
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
    #[cfg(feature = "kafka")]
    let kafka = rdkafka::mocking::MockCluster::new(1).unwrap();
    let (_, rabbitmq) = rabbitmq.split_once('@').unwrap();
    for settings in [
        format!("type = \"nats\"\nurl = \"nats://ada:s3cret@{}\"\ncreate_stream = \"A\"", nats.address()),
        format!("type = \"redis\"\nurl = \"redis://ada:s3cret@{}\"", redis.address()),
        format!("type = \"rabbitmq\"\nurl = \"amqp://ada:s3cret@{rabbitmq}\""),
        #[cfg(feature = "kafka")]
        format!("type = \"kafka\"\nbrokers = \"{}\"\n{SASL}\ntimeout_ms = 2000", kafka.bootstrap_servers()),
        format!(
            "type = \"webhook\"\nurl = \"http://ada:s3cret@{redis}/s3cret?s3cret\"\n{SIGNED}",
            redis = redis.address()
        ),
    ] {
        let _ = common::open(&settings).publish(&common::events("order", 1)).await;
    }
    let text = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(text.contains("async_nats") && text.contains("lapin") && text.contains("hyper_util"), "{text}");
    #[cfg(feature = "kafka")]
    assert!(text.contains("librdkafka"), "{text}");
    let told: Vec<_> = text.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(told.is_empty(), "{told:#?}");
}
