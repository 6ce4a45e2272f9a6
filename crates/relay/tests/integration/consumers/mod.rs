//! Consumers of real brokers: every event has its effect once and in order, however often it is delivered.

mod broker;
mod cached;
mod checks;
mod hung;
#[cfg(feature = "kafka")]
mod kafka;
mod nats;
mod rabbitmq;
mod redis;
mod takes;

use milepost_relay::consumer::{NatsSource, RabbitmqSource, RedisSource};

macro_rules! with_each_broker {
    ($($check:ident)+) => {
        mod on_nats {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                crate::consumers::checks::$check(&crate::consumers::nats::Nats::make().await).await;
            })+
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                crate::consumers::checks::$check(&crate::consumers::redis::Redis::make()).await;
            })+
        }
        mod on_rabbitmq {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                crate::consumers::checks::$check(&crate::consumers::rabbitmq::Rabbitmq::make().await).await;
            })+
        }
    };
}

with_each_broker! {
    whatever_fails_has_its_effect_once_and_in_order
    a_message_that_is_no_event_holds_up_nothing
    one_that_stops_ends_what_it_began_and_gives_back_the_rest
    a_connection_that_breaks_is_made_anew
    a_gap_that_is_given_up_is_gone_past_without_a_message
}

#[test]
fn settings_that_cannot_be_used_are_told_without_secrets() {
    let told = [
        NatsSource::new("http://ada:s3cret@broker", "EVENTS", "billing").unwrap_err(),
        NatsSource::new("nats://broker", "EVENTS", "a b").unwrap_err(),
        RabbitmqSource::new("http://ada:s3cret@broker", "orders").unwrap_err(),
        RabbitmqSource::new("amqp://broker", "").unwrap_err(),
        RedisSource::new("http://ada:s3cret@broker", "orders", "billing", "1").unwrap_err(),
    ];
    assert_eq!(told.each_ref().map(|told| told.setting), ["url", "durable", "url", "queue", "url"]);
    assert!(told.iter().all(|told| !told.to_string().contains("s3cret")));
    assert!(
        !format!("{:?}", RabbitmqSource::new("amqp://ada:s3cret@broker", "q").unwrap()).contains("s3cret")
    );
    assert!(!format!("{:?}", NatsSource::new("nats://s3cret@broker", "S", "q").unwrap()).contains("s3cret"));
}
