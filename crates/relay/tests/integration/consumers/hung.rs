//! Brokers that accept a connection or a result and never reply.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::error::Cause;
use milepost_core::event::Event;
use milepost_relay::consumer::{
    Handler, Incoming, NatsSource, RabbitmqSource, Receipt, RedisSource, Runner, Source, SourceDown,
};
use milepost_testkit::wait;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::common;

/// A broker with three events of one aggregate. It never replies to a result.
#[derive(Debug, Default)]
struct Hung {
    delivered: AtomicI64,
}

#[async_trait]
impl Source for Hung {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        let sequence = self.delivered.fetch_add(1, Ordering::SeqCst) + 1;
        if sequence > 3 {
            return std::future::pending().await;
        }
        let event = Event { sequence, ..common::event("order", "1".to_owned(), "{}") };
        Ok(Incoming { event: Ok(event), receipt: Box::new(NoReply) })
    }
}

struct NoReply;

#[async_trait]
impl Receipt for NoReply {
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        std::future::pending().await
    }

    async fn retry(self: Box<Self>, _: Duration) -> Result<(), String> {
        std::future::pending().await
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        std::future::pending().await
    }
}

/// Fails the second event.
#[derive(Default)]
struct Handled {
    sequences: Mutex<Vec<i64>>,
    third: Notify,
}

#[async_trait]
impl Handler for Handled {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        self.sequences.lock().unwrap().push(event.sequence);
        match event.sequence {
            2 => Err("it fails".into()),
            3 => {
                self.third.notify_one();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_never_replies_to_results_delays_the_next_events_but_does_not_stop_them() {
    let handled = Arc::new(Handled::default());
    let stop = CancellationToken::new();
    let ran = tokio::spawn(Runner::new(Hung::default(), handled.clone()).run(stop.clone()));
    tokio::time::timeout(wait::LIMIT, handled.third.notified()).await.expect("the third event never came");
    stop.cancel();
    tokio::time::timeout(wait::LIMIT, ran).await.expect("the consumer does not stop").unwrap();
    assert_eq!(*handled.sequences.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn a_broker_that_accepts_a_connection_and_never_replies_is_reported_as_unavailable() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let sources: [Box<dyn Source>; 3] = [
        Box::new(NatsSource::new(&format!("nats://{address}"), "EVENTS", "billing").unwrap()),
        Box::new(RabbitmqSource::new(&format!("amqp://ada:s3cret@{address}"), "orders").unwrap()),
        Box::new(RedisSource::new(&format!("redis://{address}"), "orders", "billing", "1").unwrap()),
    ];
    let asked = sources.map(|mut source| {
        tokio::spawn(async move { tokio::time::timeout(wait::LIMIT, source.next()).await.map(Result::err) })
    });
    for asked in asked {
        let down = asked.await.unwrap().expect("it waits forever").expect("it has no message");
        assert!(down.to_string().contains("cannot be read"), "{down}");
    }
}
