//! The broker of a test: a dedicated NATS server.

use std::time::Duration;

use async_nats::jetstream;
use milepost_core::ident::EventId;
use milepost_testkit::nats::NatsServer;

pub(crate) struct Broker(NatsServer);

/// A message as a consumer receives it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: EventId,
    pub(crate) aggregate: String,
    pub(crate) sequence: i64,
}

impl Broker {
    pub(crate) async fn running() -> Self {
        Self(NatsServer::running(&[]).await)
    }

    /// Returns a configuration whose only subscription publishes to this broker.
    pub(crate) fn config(&self) -> String {
        format!(
            "[subscription.chaos]\nlease = \"2s\"\nbackoff = {{ base = \"100ms\", cap = \"1s\" }}\n\
             nats = {{ url = \"{}\", subject = \"chaos.{{event_type}}\", create_stream = \"CHAOS\", timeout_ms = 10000 }}\n",
            self.0.url()
        )
    }

    pub(crate) async fn restart(&self) {
        self.0.kill().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.0.start().await;
    }

    /// Returns all messages of the stream.
    pub(crate) async fn messages(&self) -> Vec<Message> {
        let client = async_nats::connect(self.0.url()).await.unwrap();
        let mut stream = jetstream::new(client).get_stream("CHAOS").await.unwrap();
        let mut all = Vec::new();
        for sequence in 1..=stream.info().await.unwrap().state.messages {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let header = |name: &str| message.headers.get(name).unwrap().to_string();
            all.push(Message {
                id: header("ce-id").parse().unwrap(),
                aggregate: header("ce-subject"),
                sequence: header("ce-aggregateseq").parse().unwrap(),
            });
        }
        all
    }
}
