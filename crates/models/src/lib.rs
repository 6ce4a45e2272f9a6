//! Exhaustive models of two protocols, and the replay of recorded runs against the first one.
//!
//! A model is a small copy of a protocol, of which a checker visits every state that callers, crashes and lost answers can lead to. Chaos
//! experiments test the product itself, but only some orders of events; a model tests every order, but only the modelled part.
//!
//! - [`job`]: the life of one job, with workers, an operator and a rescuer. State changes are those of
//!   [`milepost_core::transition::transition`]; the fence and the guards of the stores' statements are modelled.
//! - [`log`]: the position of a reader in the log of events on PostgreSQL, across crashes, failovers and restores.
//! - [`job::replay`]: checks the recorded history of a job against the rules of the first model.
//!
//! Each model has defects that can be put back. Tests check that the checker finds each of them.

pub mod job;
pub mod log;
