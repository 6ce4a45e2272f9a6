//! Redis as a helper of Milepost's workers: heartbeats for operators, locks, stop flags and wake-ups.
//!
//! Nothing of it is trusted. The database alone decides who lives, who runs a job and what is to stop; Redis only
//! says that asking it is worth it, sooner than polling would. While Redis is away, calls return at once.
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
