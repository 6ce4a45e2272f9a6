//! Runs Milepost in virtual time, with faults that a seed determines.
//!
//! [`world::simulate`] runs workers, a client and a reader as tasks of one thread on a SQLite file in memory, and decides from what happened whether
//! each promise was kept. Time passes only when every task waits, so that an hour takes a moment. Nothing depends on the clock of the
//! machine, on threads or on random numbers of the system ([`machine`]), so the same seed gives the same run, event by event.

pub mod machine;
pub mod node;
pub mod plan;
pub mod shrink;
pub mod trace;
pub mod world;

mod consumer;
