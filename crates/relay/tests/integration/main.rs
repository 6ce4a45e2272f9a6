//! Publishers, sinks and consumers against real brokers.
//!
//! One test binary for the whole crate: a file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod common;
mod consumers;
mod jsonl;
mod kafka;
mod nats;
mod publishing;
mod rabbitmq;
mod redis;
mod secrets;
mod webhook;
