//! The worker runtime as its users call it.
//!
//! One test binary for the whole crate: a file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod attempts;
