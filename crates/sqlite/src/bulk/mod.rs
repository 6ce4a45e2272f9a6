//! Bulk jobs: what is done to many targets, a chunk a transaction, with the cursor in it.
//!
//! [`SqlBulk`] is what users write in SQL; [`ChunkHandler`] what they write in Rust. Either is a
//! [`BulkWork`](milepost_core::port::BulkWork) for a worker. A chunk keeps every other process of the machine from
//! writing, so it takes 30 ms at most, whatever was asked for.

mod admin;
mod chunk;
mod handler;
mod operation;
mod plan;
mod progress;
mod read;
mod row;
mod run;
mod sql;
mod staging;
mod throttle;
mod work;

pub(crate) use admin::definition_of;
pub use handler::{ChildEvents, ChildJobs, ChunkHandler};
pub use operation::Operations;
pub use read::SqliteRows;
pub(crate) use row::add_key_function;
pub use throttle::SqlProbe;
pub use work::{Effect, SqlBulk};
