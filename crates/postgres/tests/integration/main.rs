//! Integration tests of the PostgreSQL store: its statements and plans, and features that only PostgreSQL has.
//!
//! One test binary for the whole crate: each file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod access;
mod arrival;
mod audit;
mod batches;
mod changes;
mod clock;
mod connections;
mod documentation;
mod durable;
mod feed;
mod isolation;
mod keys;
mod limits;
mod payload_types;
mod retention;
mod roles;
mod rollups;
mod schedules;
mod schema;
mod settings;
mod statements;
mod throttles;
mod tls;
mod unreadable;
