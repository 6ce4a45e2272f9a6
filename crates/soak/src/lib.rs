//! Runs the programs of Milepost for hours: jobs, events and faults at a steady rate, with short retention. Memory, tables, latency, threads and
//! file descriptors must not grow.

mod configuration;
mod faults;
mod load;
mod place;
mod processes;
mod receiver;
mod run;
mod samples;
mod table;
mod trend;

pub use run::{SoakArgs, run};
