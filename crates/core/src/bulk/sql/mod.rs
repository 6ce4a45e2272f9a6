//! SQL of bulk jobs: the source query of the targets, and the apply statement. It is parsed only as far as needed to
//! insert parameters, cursor and order; the database validates the rest.

mod apply;
mod cursor;
mod source;
mod tail;
mod text;

use thiserror::Error;

pub use apply::Apply;
pub use source::{Bounds, Source};
pub use text::Dialect;

/// The relation from which an apply statement reads its targets.
pub const CHUNK: &str = "chunk";

/// Checks the query of a throttle: one statement, without parameters.
///
/// # Errors
/// [`InvalidSql`] with the fault.
pub fn check_probe(sql: &str, dialect: Dialect) -> Result<(), InvalidSql> {
    match text::Text::read(sql, dialect)?.parameters.into_iter().next() {
        Some(parameter) => Err(InvalidSql::ProbeParameter { name: parameter.name }),
        None => Ok(()),
    }
}

/// The parameter syntax of a store.
pub trait Placeholders {
    /// Returns the placeholder for the parameter with this name.
    fn parameter(&mut self, name: &str) -> String;
    /// Returns the placeholder for a column of the cursor's key, from 0.
    fn cursor(&mut self, column: usize) -> String;
    /// Returns the placeholder for the maximum number of rows.
    fn limit(&mut self) -> String;
}

/// An invalid source or apply statement, found without querying a database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidSql {
    /// The text is empty.
    #[error("the statement is empty")]
    Empty,
    /// The text cannot be tokenized.
    #[error("it cannot be parsed: {why}")]
    Unreadable {
        /// The tokenizer's message.
        why: String,
    },
    /// There is more than one statement.
    #[error("it has more than one statement; write one, without semicolons inside it")]
    SeveralStatements,
    /// A parameter in the query of a throttle.
    #[error("it must not have parameters; remove :{name}")]
    ProbeParameter {
        /// The name of the parameter.
        name: String,
    },
    /// A positional parameter such as `$1` or `?`.
    #[error("parameters must have names: write :name instead of {found}")]
    Positional {
        /// The parameter.
        found: String,
    },
    /// The source is not a query.
    #[error("a source must be a SELECT, or a WITH … SELECT")]
    NotAQuery,
    /// The source does not end with ORDER BY and LIMIT.
    #[error(
        "a source must end with ORDER BY its key columns and LIMIT :limit, so that chunks continue by key; add: order by {key} limit :limit"
    )]
    NoOrder {
        /// The key columns.
        key: String,
    },
    /// The order is not that of the key.
    #[error(
        "the source is ordered by {order}, but its key is {key}: both must name the same columns in the same order"
    )]
    OrderIsNotKey {
        /// The columns it is ordered by.
        order: String,
        /// The key columns.
        key: String,
    },
    /// The order is descending.
    #[error(
        "the source is in descending order, which is not supported: order by {column} without DESC, and write > :cursor"
    )]
    Descending {
        /// The column.
        column: String,
    },
    /// The order contains NULLS FIRST or NULLS LAST.
    #[error("a key has no NULLs, so remove NULLS FIRST or NULLS LAST from ORDER BY {column}")]
    Nulls {
        /// The column.
        column: String,
    },
    /// The source does not contain `:cursor`, so every chunk would be the first one.
    #[error(
        "the source does not contain :cursor, so every chunk would be the first one; add: where {left} > :cursor"
    )]
    NoCursor {
        /// The expression that belongs on the left side.
        left: String,
    },
    /// There is more than one `:cursor`.
    #[error("the source contains :cursor more than once; use it exactly once")]
    CursorTwice,
    /// The cursor is not compared in the supported form.
    #[error(
        "the cursor must be compared as {left} > :cursor, alone or joined by AND, and must not be used otherwise"
    )]
    CursorNotCompared {
        /// The expression that belongs on the left side.
        left: String,
    },
    /// `:cursor` or `:limit` where it is not allowed.
    #[error(":{name} is allowed only in the source; {instead}")]
    Misplaced {
        /// The name of the parameter.
        name: String,
        /// The remedy.
        instead: &'static str,
    },
    /// The apply statement does not read the relation `chunk`.
    #[error(
        "the apply statement does not read the relation `chunk`, so it would do the same for every chunk; select from chunk"
    )]
    NoChunk,
    /// The apply statement does not read or change data.
    #[error(
        "an apply statement must be an INSERT, UPDATE, DELETE, MERGE or SELECT over the relation `chunk`"
    )]
    NotAnApply,
    /// The apply statement changes a key column of the source.
    #[error(
        "the apply statement sets {column}, a key column of the source: rows would move past the cursor or be returned twice; use a key that the statement does not change"
    )]
    TouchesKey {
        /// The column.
        column: String,
    },
    /// The source has no key columns.
    #[error("name the key columns of the source: key = [\"id\"]")]
    NoKey,
}
