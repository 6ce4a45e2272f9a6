//! Tests of Redis as a helper.
//!
//! One test binary for the whole crate: each file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod redis;
