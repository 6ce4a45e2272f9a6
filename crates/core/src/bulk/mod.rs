//! Bulk jobs: their definition, how they read their targets, chunk sizes, time windows, and estimates of the remaining
//! time. Pure functions: times and measurements are arguments.

pub mod child_jobs;
pub mod chunk;
pub mod definition;
pub mod dry_run;
pub mod effect;
pub mod error;
pub mod estimate;
pub mod event_template;
pub mod key;
pub mod listing;
pub mod operation;
pub mod parameters;
pub mod progress;
pub mod row_pages;
pub mod run;
pub mod settings;
pub mod sql;
pub mod staged;
pub mod statements;
pub mod window;
