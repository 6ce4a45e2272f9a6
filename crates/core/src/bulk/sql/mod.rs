//! What users write in SQL: a source of targets and what is done to them. Read only so far that parameters, cursor
//! and order can be put in; the database has the last word on everything else.

mod apply;
mod cursor;
mod source;
mod text;

use thiserror::Error;

pub use apply::Apply;
pub use source::{Bounds, Source};
pub use text::Dialect;

/// The relation that an apply reads its targets from.
pub const CHUNK: &str = "chunk";

/// How a store writes parameters.
pub trait Placeholders {
    /// The parameter of this name.
    fn parameter(&mut self, name: &str) -> String;
    /// A column of the key up to which everything was done, from 0.
    fn cursor(&mut self, column: usize) -> String;
    /// The most rows.
    fn limit(&mut self) -> String;
}

/// A source or an apply that cannot be used, found without asking a database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidSql {
    /// There is nothing.
    #[error("there is no statement")]
    Empty,
    /// It is not even tokens.
    #[error("it cannot be read: {why}")]
    Unreadable {
        /// What the tokenizer said.
        why: String,
    },
    /// More than one.
    #[error("it has more than one statement; write one, without a semicolon inside")]
    SeveralStatements,
    /// `$1` or `?`.
    #[error("parameters have names here: write :name instead of {found}")]
    Positional {
        /// What was found.
        found: String,
    },
    /// A source that is no query.
    #[error("a source is a SELECT, or a WITH … SELECT")]
    NotAQuery,
    /// A source without its end.
    #[error(
        "a source ends with ORDER BY its key columns and LIMIT :limit, so that chunks go on by key; add: order by {key} limit :limit"
    )]
    NoOrder {
        /// The key columns.
        key: String,
    },
    /// The order is not the key's.
    #[error(
        "the source is ordered by {order}, but its key is {key}: both must name the same columns in the same order"
    )]
    OrderIsNotKey {
        /// What it is ordered by.
        order: String,
        /// The key columns.
        key: String,
    },
    /// Downwards.
    #[error(
        "the source goes downwards, which is not supported: order by {column} without DESC, and write > :cursor"
    )]
    Descending {
        /// The column.
        column: String,
    },
    /// NULLS FIRST and the like.
    #[error("a key has no NULLs, so say nothing about them in ORDER BY {column}")]
    Nulls {
        /// The column.
        column: String,
    },
    /// Without `:cursor` every chunk would be the first.
    #[error(
        "the source never mentions :cursor, so every chunk would be the first one; add: where {left} > :cursor"
    )]
    NoCursor {
        /// What belongs on the left side.
        left: String,
    },
    /// More than one `:cursor`.
    #[error("the source mentions :cursor more than once; it goes on from one place")]
    CursorTwice,
    /// Not where it can be understood.
    #[error(
        "the cursor is compared as {left} > :cursor, on its own or joined by AND, and nothing else is done to it"
    )]
    CursorNotCompared {
        /// What belongs on the left side.
        left: String,
    },
    /// A cursor or a limit where there is none.
    #[error(":{name} belongs into the source only; {instead}")]
    Misplaced {
        /// Which one.
        name: String,
        /// What is right.
        instead: &'static str,
    },
    /// An apply that reads nothing of its chunk.
    #[error(
        "the apply never reads the relation `chunk`, so it would do the same for every chunk; select from chunk"
    )]
    NoChunk,
    /// An apply that is no statement on data.
    #[error("an apply is an INSERT, UPDATE, DELETE, MERGE or SELECT over the relation `chunk`")]
    NotAnApply,
    /// An apply that moves its own targets.
    #[error(
        "the apply sets {column}, which the source goes by: rows would move past the cursor or come twice; go by a key that it leaves alone"
    )]
    TouchesKey {
        /// The column.
        column: String,
    },
    /// A source without key columns.
    #[error("name the columns that the source goes by: key = [\"id\"]")]
    NoKey,
}
