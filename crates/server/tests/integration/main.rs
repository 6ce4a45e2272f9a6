//! The HTTP API and the console over real connections.
//!
//! One test binary for the whole crate: a file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod api;
