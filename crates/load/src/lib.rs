//! Load on real `milepost` processes, with a disturbance in the second third of the run.
//!
//! [`run::run`] starts a server and workers, creates jobs over HTTP at a constant rate, and reads everything back over the API. [`verdict`] decides
//! from counts only whether the scenario passed; times are shown in the report ([`report`]) and decide nothing.

pub mod api;
pub mod args;
pub mod evidence;
pub mod generator;
pub mod handler;
pub mod hints;
pub mod phases;
pub mod place;
pub mod plan;
pub mod process;
pub mod read_back;
pub mod recovery;
pub mod report;
pub mod run;
pub mod scenario;
pub mod store_kind;
pub mod timeline;
pub mod verdict;
