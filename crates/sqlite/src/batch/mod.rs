//! Batches: DAGs of jobs. How counters stand, and what follows from an end.
//!
//! Whatever changes the job of a task calls [`settle_jobs`] in the same transaction, or hands the task to a
//! [`Settler`](settle::Settler), which counts ends in what waits for them, makes the jobs of what can run then, adds
//! up the batches, and goes on until nothing follows or the page is full. [`advance`](advance::advance) does
//! what pages left.

mod advance;
mod dag;
mod due;
mod head;
mod inside;
mod listing;
mod mend;
mod operation;
mod output;
mod port;
mod prune;
mod rerun;
mod settle;
mod spread;
mod start;
mod total;
mod version;

pub(crate) use advance::is_needed;
pub(crate) use head::tally;
pub(crate) use mend::mend_batch;
pub(crate) use settle::{check_result, settle_jobs};
pub use start::start_batch;
pub(crate) use start::{fit, put, start};
