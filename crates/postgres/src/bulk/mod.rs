//! Bulk jobs: what is done to many targets, a chunk a transaction, with the cursor in it.
//!
//! [`SqlBulk`] is what users write in SQL; [`ChunkHandler`] what they write in Rust. Either is a
//! [`BulkWork`](milepost_core::port::BulkWork) for a worker. A run has a connection of its own, whose server process
//! is known, so that a chunk can be stopped from elsewhere.

mod admin;
mod chunk;
mod database;
mod handler;
mod operation;
mod plan;
mod progress;
mod read;
mod remote;
mod row;
mod run;
mod sql;
mod staging;
mod target;
mod throttle;
mod visit;
mod work;

pub use database::Database;
pub use handler::{ChildEvents, ChildJobs, ChunkHandler};
pub use operation::Operations;
pub use read::PostgresRows;
pub use remote::PostgresTargets;
pub use throttle::{Measure, ServerThrottle};
pub use work::{Effect, SqlBulk};
