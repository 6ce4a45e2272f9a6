//! Bulk jobs: operations on many targets, in one transaction per chunk that also moves the cursor.
//!
//! [`SqlBulk`] runs bulk jobs written in SQL, [`ChunkHandler`] is the trait for chunk handlers in Rust. Both are used as a
//! [`BulkWork`](milepost_core::port::BulkWork) of a worker. Each run has a dedicated connection, whose server process is
//! known, so that a chunk can be canceled from another session.

mod admin;
mod chunk;
mod data_error;
mod database;
mod handler;
mod operation;
mod plan;
mod progress;
mod read;
mod remote;
mod row;
mod spec;
mod sql;
mod staging;
mod target;
mod throttle;
mod visit;
mod watch;
mod work;

pub use database::Database;
pub use handler::{ChildEvents, ChildJobs, ChunkHandler};
pub use operation::Operations;
pub use remote::PostgresTargets;
pub use spec::Effect;
pub use throttle::{Measure, ServerThrottle};
pub use work::SqlBulk;
