//! Redis as an optional helper of Milepost's workers: heartbeats for operators, locks, stop flags and wake-ups.
//!
//! No decision depends on it. Only the database decides which workers are active, which run owns a job and which job is to stop; Redis only
//! signals that a query is worthwhile, earlier than polling would. While Redis is unavailable, calls return immediately.
//!
//! ```no_run
//! # async fn run(store: std::sync::Arc<dyn milepost_core::port::Store>) -> Result<(), milepost_redis::InvalidRedis> {
//! use std::sync::Arc;
//!
//! use milepost_redis::{Redis, RedisOptions};
//!
//! let redis = Arc::new(Redis::start("redis://127.0.0.1", RedisOptions::default())?);
//! // Worker::builder(store).coordination(redis)
//! # drop((redis, store));
//! # Ok(())
//! # }
//! ```

mod hints;
mod inbox;
mod keys;
mod link;
mod options;
mod redis;

pub use crate::options::{InvalidRedis, PREFIX_DEFAULT, RedisOptions, TIMEOUT_DEFAULT, check_url};
pub use crate::redis::Redis;
