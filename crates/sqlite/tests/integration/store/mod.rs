//! Tests that are specific to the SQLite store.

mod batches;
mod calls;
mod clock;
mod departure;
mod disk;
mod files;
mod fixture;
mod keys;
mod neighbours;
mod queries;
mod retention;
mod rollups;
mod schemas;
mod transactions;
mod unreadable;
mod wakes;
