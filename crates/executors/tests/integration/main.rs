//! Tests of jobs that run as HTTP calls and as programs.
//!
//! One test binary for the whole crate: each file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod exec;
mod flood;
mod guarded;
mod http;
mod probe;
mod secrets;
mod support;
