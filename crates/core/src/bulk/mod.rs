//! Bulk jobs: how large a chunk is, when one may start, and how long the rest will take. Pure: times and
//! measurements are arguments.

pub mod chunk;
pub mod estimate;
pub mod window;
