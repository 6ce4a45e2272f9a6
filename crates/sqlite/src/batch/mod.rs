//! Batches: DAGs of jobs, their counters, and the consequences of ended tasks.
//!
//! Every change to the job of a task calls [`settle_jobs`] in the same transaction, or passes the task to a [`Settler`](settle::Settler).
//! The settler counts ended tasks in their successors, creates the jobs of tasks that can run, updates the task counts of batches, and
//! continues until nothing follows or the page is full. [`advance`](advance::advance) processes the work that pages deferred.

mod advance;
mod counts;
mod dag;
mod due;
mod head;
mod inside;
mod listing;
mod operation;
mod output;
mod port;
mod prune;
mod repair;
mod rerun;
mod settle;
mod spread;
mod start;
mod version;
mod wait;

pub(crate) use advance::is_needed;
pub(crate) use head::tally;
pub(crate) use repair::repair_batch;
pub(crate) use settle::{check_result, settle_jobs};
pub use start::start_batch;
pub(crate) use start::{fit, fit_of_new, put, start};
pub use wait::signal;
pub(crate) use wait::{fit as fit_signal, send as send_signal};
