//! Relay between event logs and brokers: publishes the events of a store in the order of each aggregate until the receiver has acknowledged them, and
//! consumes events from brokers.

pub mod consumer;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod message;
pub mod ordered_waves;
pub mod publisher;
pub mod sink;
mod template;
