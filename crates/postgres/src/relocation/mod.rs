//! The target of a move from another store: the record of the move, and the import of its rows.

mod arrival;
mod import;
