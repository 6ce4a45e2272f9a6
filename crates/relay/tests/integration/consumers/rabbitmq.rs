//! Consumers of RabbitMQ.

use std::sync::Arc;

use async_trait::async_trait;
use lapin::options::{BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, ConnectionProperties};
use milepost_relay::consumer::{Handler, RabbitmqSource, Runner};
use milepost_relay::sink::Sink;
use milepost_testkit::wait;

use crate::common;
use crate::consumers::broker::{Broker, NO_EVENT, host_and_port, unique};

pub(crate) struct Rabbitmq {
    url: String,
    name: String,
}

impl Rabbitmq {
    pub(crate) async fn make() -> Self {
        let made = Self { url: common::shared("MILEPOST_TEST_RABBITMQ"), name: unique() };
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let channel = made.channel().await;
        channel.queue_declare(made.name.as_str().into(), options, FieldTable::default()).await.unwrap();
        made
    }

    async fn channel(&self) -> lapin::Channel {
        let connecting = async {
            let connection = lapin::Connection::connect(&self.url, ConnectionProperties::default()).await;
            connection.unwrap().create_channel().await.unwrap()
        };
        tokio::time::timeout(wait::LIMIT, connecting).await.expect("RabbitMQ opened no channel")
    }
}

#[async_trait]
impl Broker for Rabbitmq {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!("type = \"rabbitmq\"\nurl = \"{url}\"\nrouting_key = \"{name}\"\n"))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = match (address, self.url.rsplit_once('@')) {
            (None, _) => self.url.clone(),
            (Some(address), Some((account, _))) => format!("{account}@{address}"),
            (Some(address), None) => format!("amqp://{address}"),
        };
        Runner::new(RabbitmqSource::new(&url, &self.name).unwrap(), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        let channel = self.channel().await;
        let publishing = channel.basic_publish(
            "".into(),
            self.name.as_str().into(),
            BasicPublishOptions::default(),
            NO_EVENT.as_bytes(),
            BasicProperties::default(),
        );
        publishing.await.unwrap().await.unwrap();
    }

    /// Returns the number of messages in a queue that has no consumers any more.
    async fn left(&self) -> u64 {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let channel = self.channel().await;
        let queue =
            channel.queue_declare(self.name.as_str().into(), options, FieldTable::default()).await.unwrap();
        let left = u64::from(queue.message_count());
        if left == 0 {
            channel.queue_delete(self.name.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
        }
        left
    }
}
