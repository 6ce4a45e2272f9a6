//! Finds out whether the promises of `docs/GUARANTEES.md` hold.
//!
//! A run under faults writes a [`record::Record`]: what clients asked for and were answered, which effects a witness saw, and which rows the store
//! has at the end. [`checker::check`] decides from it, for each promise by its number, whether it was kept. It knows nothing of the product's
//! code, so that a fault there cannot hide itself.

pub mod checker;
pub mod record;
