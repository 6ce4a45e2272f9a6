//! Events to their brokers: what is in the log of a store goes out, in each aggregate's order, until its receiver has
//! acknowledged it.

pub mod consumer;
mod message;
pub mod publisher;
pub mod sink;
mod template;
pub mod waves;
