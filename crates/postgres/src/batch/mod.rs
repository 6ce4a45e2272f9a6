//! Batches: storage of DAGs and progress of tasks. The consequences of a task's end are computed in `sql/settle.sql`.

mod dag;
mod due;
mod due_data;
mod error;
mod listing;
mod operation;
mod port;
mod signal;
mod start;
mod version;

pub(crate) use due::{go_on, settle_ended};
pub(crate) use error::{ILLEGAL, job_of_batch, signal_error, start_error};
pub use signal::signal;
pub(crate) use signal::{send_in, send_within};
pub use start::start_batch;
pub(crate) use start::{fit, start_in, start_within};
