//! Batches: runs of DAG versions. Starts, evaluation of due tasks, and the operations and views for operators.
//!
//! The rules are in [`crate::dag`]; stores keep the counters.

pub mod due;
pub mod error;
pub mod inside;
pub mod listing;
pub mod nominal;
pub mod operation;
pub mod rerun;
pub mod start;
pub mod subject;
pub mod wait;

/// The maximum size of a task's result as JSON text, in bytes. It is limited because the task's successors read it.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;
/// The maximum total size of predecessors' results that one task may read, in bytes.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The maximum total size of results that are loaded for the tasks of one round, in bytes. A task beyond it is left to the next round.
pub const ROUND_READ_BYTES_MAX: usize = 2 * READ_BYTES_MAX;
/// The maximum number of items of a task with `each`.
pub const ITEMS_MAX: usize = 100_000;
/// The maximum number of rows that one transaction changes after the end of a task; the rest is done in further transactions.
pub const PAGE_ROWS: u32 = 2000;
/// The maximum number of signals with one name that a batch keeps until a wait uses them.
pub const SIGNALS_MAX: u32 = 100;
/// The maximum nesting depth of batches.
pub const DEPTH_MAX: u32 = 8;
