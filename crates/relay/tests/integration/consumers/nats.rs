//! Consumers of NATS JetStream.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_trait::async_trait;
use milepost_relay::consumer::{Handler, NatsSource, Runner};
use milepost_relay::sink::Sink;

use crate::common;
use crate::consumers::broker::{BILLING, Broker, NO_EVENT, host_and_port, unique};

pub(crate) struct Nats {
    url: String,
    name: String,
}

impl Nats {
    pub(crate) async fn make() -> Self {
        let (url, name) = (common::shared("MILEPOST_TEST_NATS"), unique());
        let made = Self { url, name };
        let config = stream::Config {
            name: made.name.clone(),
            subjects: vec![format!("{}.>", made.name)],
            ..Default::default()
        };
        made.jetstream().await.create_stream(config).await.unwrap();
        made
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }
}

#[async_trait]
impl Broker for Nats {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!(
            "type = \"nats\"\nurl = \"{url}\"\nsubject = \"{name}.{{aggregate_type}}.{{event_type}}\"\n"
        ))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = address.map_or(self.url.clone(), |address| format!("nats://{address}"));
        let source = NatsSource::new(&url, &self.name, BILLING).unwrap();
        Runner::new(source.ack_wait(Duration::from_secs(2)), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        let subject = format!("{}.odd", self.name);
        self.jetstream().await.publish(subject, NO_EVENT.into()).await.unwrap().await.unwrap();
    }

    async fn left(&self) -> u64 {
        let stream = self.jetstream().await.get_stream(&self.name).await.unwrap();
        let Ok(mut consumer) = stream.get_consumer::<consumer::pull::Config>(BILLING).await else {
            return u64::MAX;
        };
        let info = consumer.info().await.unwrap();
        info.num_pending + info.num_ack_pending as u64
    }
}
