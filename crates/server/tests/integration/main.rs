//! Integration tests of the HTTP API and the console over real connections.
//!
//! The crate has one test binary; each file is a module that is listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod api;
