//! Bulk jobs: what they are, how they read their targets, how large a chunk is, when one may start, and how long the
//! rest will take. Pure: times and measurements are arguments.

pub mod chunk;
pub mod definition;
pub mod error;
pub mod estimate;
pub mod event_template;
pub mod key;
pub mod listing;
pub mod operation;
pub mod parameters;
pub mod progress;
pub mod run;
pub mod sql;
pub mod staged;
pub mod window;
