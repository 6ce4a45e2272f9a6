//! The SQLite store: the conformance suite, and what only SQLite has.
//!
//! One test binary for the whole crate: a file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod store;
