//! Bulk jobs: work on many targets in chunks. Each chunk is one transaction, which includes the cursor.
//!
//! [`SqlBulk`] is a bulk job written in SQL; [`ChunkHandler`] is one written in Rust. Either is a
//! [`BulkWork`](milepost_core::port::BulkWork) for a worker. During a chunk no other process of the machine can write, so a chunk takes at
//! most 30 ms, even if more is configured.

mod admin;
mod chunk;
mod facts;
mod handler;
mod operation;
mod plan;
mod progress;
mod read;
mod row;
mod run;
mod spec;
mod sql;
mod staging;
mod throttle;
mod work;

pub(crate) use admin::definition_of;
pub use handler::{ChildEvents, ChildJobs, ChunkHandler};
pub use operation::Operations;
pub(crate) use row::add_key_function;
pub use spec::Effect;
pub use throttle::SqlProbe;
pub use work::SqlBulk;
