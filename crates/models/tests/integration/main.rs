//! Tests of the models: without a defect no rule is broken, and each defect is found.

mod job;
mod log;
mod replay;
