//! Tests with real processes.

mod k6;
mod scenarios;
