//! Batches: runs of DAG versions. What starts one, what a task becomes whose rule holds, what operators do and see.
//!
//! What follows from what is in [`crate::dag`]; stores keep the counters.

pub mod due;
pub mod error;
pub mod inside;
pub mod listing;
pub mod nominal;
pub mod operation;
pub mod rerun;
pub mod start;
pub mod subject;

/// The largest result of a task, as JSON text: its successors read it.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;
/// How much of its predecessors' results one task may read.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most items that a task goes over.
pub const ITEMS_MAX: usize = 100_000;
/// How many rows one transaction of what follows from an end may change; the rest is done in further ones.
pub const PAGE_ROWS: u32 = 2000;
/// How deep batches may lie in one another.
pub const DEPTH_MAX: u32 = 8;
