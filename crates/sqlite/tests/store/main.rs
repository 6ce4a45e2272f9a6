//! What is particular to the SQLite store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod batches;
mod calls;
mod departure;
mod files;
mod fixture;
mod keys;
mod neighbours;
mod queries;
mod retention;
mod schemas;
mod transactions;
mod wakes;
