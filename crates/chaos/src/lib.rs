//! Finds out whether the promises of `docs/GUARANTEES.md` hold.
//!
//! [`experiment::run`] puts load on a store, injects faults into real processes, and writes a [`record::Record`]: what clients asked for and
//! were answered, which effects a witness saw, and which rows the store has at the end. [`checker::check`] decides from it, for each promise by its
//! number, whether it was kept. The checker calls nothing of the product, so that a fault there cannot hide itself.
//! [`replay::replay_jobs`] compares the jobs of a record with the model of a job's life.

mod broker;
pub mod checker;
pub mod experiment;
pub mod export;
pub mod load;
pub mod record;
pub mod replay;
pub mod settle;
pub mod witness;

#[cfg(test)]
mod planted;
