//! Tests with faults: real processes that are killed and frozen, connections that are cut, servers that restart.
//!
//! One test binary for the whole crate: each file here is a module, listed below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod audit;
mod batches;
mod bulk;
mod changes;
mod doctor;
mod duplicates;
mod emits;
mod epochs;
mod failover;
mod held;
mod kills;
mod lost_replies;
mod neighbours;
mod pooler;
mod recovery;
mod redis;
mod redis_hints;
mod restart;
mod run_tokens;
mod sql_functions;
mod ticks;
mod transactions;
mod wakes;
