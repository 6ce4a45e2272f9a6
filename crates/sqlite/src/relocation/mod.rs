//! The source of a move to another store: it is closed to changes, and its rows are exported.

pub(crate) mod closed;
mod departure;
mod export;
