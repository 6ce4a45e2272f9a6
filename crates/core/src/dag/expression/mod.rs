//! Expressions: CEL over a batch's input and tick, and over what a task's predecessors left.
//!
//! They end, and soon: CEL has no loops but over lists, a text is bounded in size and nesting, and what is gone over, joined, passed to a
//! function, put into a list or returned pays for its size out of [`STEPS_MAX`]. There are no dates and no regular expressions.

mod scope;
mod tree;

use std::collections::BTreeSet;
use std::fmt;

use cel::{IdedExpr, Value as Cel};
use serde_json::Value;
use thiserror::Error;

use super::json;
pub use scope::{Item, Scope, TaskValue, Values};

/// The longest text of an expression.
pub const TEXT_BYTES_MAX: usize = 2000;
/// The deepest nesting of brackets in an expression.
pub const NESTING_MAX: usize = 10;
/// The most operators (but for `&&` and `||`), dots and brackets in an expression: each may be one below another.
pub const LINKS_MAX: usize = 200;
/// How many steps all expressions of one task may take: each value, and each 64 bytes of a text, that is gone over, joined, compared, passed to
/// a function or returned is one, and so is each element of a list or map that an expression makes.
pub const STEPS_MAX: u64 = 2_000_000;
/// The same where others wait for a transaction: about a millisecond.
pub const LITTLE_STEPS_MAX: u64 = 10_000;

/// Text that is no expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidExpression {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// Too long.
    #[error("it has {bytes} bytes; an expression has at most {TEXT_BYTES_MAX}")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// Too many brackets in one another.
    #[error("its brackets are nested more than {NESTING_MAX} deep")]
    TooDeep,
    /// Too many operators, dots and brackets.
    #[error("it has {links} operators, dots and brackets; an expression has at most {LINKS_MAX}")]
    TooComplex {
        /// How many there are.
        links: usize,
    },
    /// Not CEL.
    #[error("at line {line}, column {column}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The parser's words.
        why: String,
    },
    /// A variable that there is not.
    #[error("there is no variable {name:?}; known are {known}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// Those there are.
        known: &'static str,
    },
    /// A function that there is not.
    #[error("there is no function {name}(); there are no dates and no regular expressions, only CEL's own")]
    UnknownFunction {
        /// Its name.
        name: String,
    },
}

/// An expression that has no value for what it was given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// CEL's own: no such member, types that do not fit, a division by zero, …
    #[error("{why}")]
    Failed {
        /// What is wrong, shortened.
        why: String,
    },
    /// A condition that is neither true nor false.
    #[error("it gives {given}; it must give {wanted}")]
    WrongType {
        /// What it gave.
        given: &'static str,
        /// What is needed.
        wanted: &'static str,
    },
    /// Too much to do.
    #[error(
        "it takes more than {STEPS_MAX} steps ({LITTLE_STEPS_MAX} in the input of a schedule); go over fewer items, or do it in a task"
    )]
    TooManySteps,
    /// A value that JSON does not have.
    #[error("it gives {given}, which JSON does not have")]
    NotJson {
        /// What it gave.
        given: &'static str,
    },
}

/// What an expression reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The predecessors that it names.
    pub tasks: BTreeSet<String>,
    /// Whether it reads predecessors without naming them, as in `tasks.all(…)`.
    pub all_tasks: bool,
    /// Whether it reads `item` or `index`.
    pub item: bool,
    /// Whether it reads `input`.
    pub input: bool,
}

impl Reads {
    /// Whether it reads nothing but the tick, so that its value is known before there is a batch.
    #[must_use]
    pub fn only_tick(&self) -> bool {
        self.tasks.is_empty() && !self.all_tasks && !self.item && !self.input
    }
}

/// A compiled expression.
#[derive(Clone, PartialEq)]
pub struct Expression {
    text: String,
    tree: IdedExpr,
    reads: Reads,
}

impl Expression {
    /// Compiles a text.
    ///
    /// # Errors
    /// [`InvalidExpression`] says what is wrong, and for what is no CEL where.
    pub fn compile(text: &str) -> Result<Self, InvalidExpression> {
        let (tree, reads) = tree::compile(text)?;
        Ok(Self { text: text.to_owned(), tree, reads })
    }

    /// What it was compiled from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it reads.
    #[must_use]
    pub const fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Its value.
    ///
    /// # Errors
    /// [`EvaluationError`] when it has none, or none that JSON has.
    pub fn value(&self, scope: &Scope) -> Result<Value, EvaluationError> {
        scope.resolve_json(&self.tree)
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// [`EvaluationError`] when it has no value, or one that is neither true nor false.
    pub fn holds(&self, scope: &Scope) -> Result<bool, EvaluationError> {
        match scope.resolve(&self.tree)? {
            Cel::Bool(truth) => Ok(truth),
            other => Err(EvaluationError::WrongType { given: json::name(&other), wanted: "true or false" }),
        }
    }

    /// The list that it gives.
    ///
    /// # Errors
    /// [`EvaluationError`] when it has no value, or one that is no list.
    pub fn list(&self, scope: &Scope) -> Result<Vec<Value>, EvaluationError> {
        match self.value(scope)? {
            Value::Array(items) => Ok(items),
            other => {
                Err(EvaluationError::WrongType { given: json::name(&json::to_cel(&other)), wanted: "a list" })
            }
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

#[cfg(test)]
mod tests;
