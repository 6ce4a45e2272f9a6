//! CEL expressions over a batch's input and tick and over the results of a task's predecessors, or over an event.
//!
//! Their run time is bounded. CEL has only loops over lists, the text is limited in size and nesting, and every value that is iterated,
//! joined, passed to a function, put into a list or returned is charged by its size against [`STEPS_MAX`]. There are no date functions
//! and no regular expressions.

mod member;
mod scope;
mod tree;
mod values;

use std::collections::BTreeSet;
use std::fmt;

use cel::{IdedExpr, Value as Cel};
use thiserror::Error;

use self::member::Member;
use super::json;
use crate::json::Exact;
pub use scope::Scope;
pub use values::{Item, TaskValue, Values};

/// The maximum size of an expression, in bytes.
pub const TEXT_BYTES_MAX: usize = 2000;
/// The maximum nesting depth of brackets in an expression.
pub const NESTING_MAX: usize = 10;
/// The maximum number of operators (except `&&` and `||`), dots and brackets in an expression; each one can add a level to the syntax tree.
pub const LINKS_MAX: usize = 200;
/// The maximum number of steps of all expressions of one task. Each value, and each 64 bytes of text, that is iterated, joined, compared,
/// passed to a function or returned counts as one step, and so does each element of a list or map that an expression creates.
pub const STEPS_MAX: u64 = 2_000_000;
/// The maximum number of steps where others wait for the transaction: about a millisecond.
pub const LITTLE_STEPS_MAX: u64 = 10_000;
/// The maximum number of steps of all expressions over one event: an event can have a payload of a MiB, and a relay evaluates many of them.
pub const EVENT_STEPS_MAX: u64 = 200_000;
/// The members of the variable `event`.
pub const EVENT_MEMBERS: [&str; 8] =
    ["id", "type", "aggregate_type", "aggregate_id", "sequence", "payload", "headers", "emitted_at"];

/// A text that is not a valid expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidExpression {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is too long.
    #[error("it has {bytes} bytes; an expression has at most {TEXT_BYTES_MAX}")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// The brackets are nested too deeply.
    #[error("its brackets are nested more than {NESTING_MAX} levels deep")]
    TooDeep,
    /// There are too many operators, dots and brackets.
    #[error("it has {links} operators, dots and brackets; an expression has at most {LINKS_MAX}")]
    TooComplex {
        /// The number found.
        links: usize,
    },
    /// The text is not CEL.
    #[error("at line {line}, column {column}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The parser's message.
        why: String,
    },
    /// A variable does not exist.
    #[error("there is no variable {name:?}; the known variables are {known}")]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The existing variables.
        known: &'static str,
    },
    /// A function does not exist.
    #[error(
        "there is no function {name}(); only CEL's built-in functions exist, without dates and regular expressions"
    )]
    UnknownFunction {
        /// Its name.
        name: String,
    },
}

/// An expression that cannot be evaluated with the given values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// An error of CEL: a missing member, wrong types, a division by zero, …
    #[error("{why}")]
    Failed {
        /// The message, shortened.
        why: String,
    },
    /// A value of the wrong type: a condition that is not a boolean, or an `each` that is not a list.
    #[error("it returns {given}; it must return {wanted}")]
    WrongType {
        /// The type of the value.
        given: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
    /// The evaluation needs too many steps.
    #[error(
        "it takes more than {STEPS_MAX} steps ({LITTLE_STEPS_MAX} in the input of a schedule, {EVENT_STEPS_MAX} for an event); process fewer items, or do the work in a task"
    )]
    TooManySteps,
    /// A value that JSON cannot represent.
    #[error("it returns {given}, which JSON cannot represent")]
    NotJson {
        /// The type of the value.
        given: &'static str,
    },
}

/// The variables that an expression reads.
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
    /// Returns whether it reads nothing but the tick, so that it can be evaluated before the batch exists.
    #[must_use]
    pub fn only_tick(&self) -> bool {
        self.tasks.is_empty() && !self.all_tasks && !self.item && !self.input
    }
}

/// The variables that an expression can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Those of a batch: `input`, `tick`, `tasks`, `item` and `index`.
    Batch,
    /// `event`.
    Event,
}

/// A compiled expression.
#[derive(Clone, PartialEq)]
pub struct Expression {
    text: String,
    tree: IdedExpr,
    reads: Reads,
    /// The member, if the expression only names one.
    member: Option<Member>,
}

impl Expression {
    /// Compiles an expression over the variables of a batch.
    ///
    /// # Errors
    /// [`InvalidExpression`] with the reason; for a syntax error also with the location.
    pub fn compile(text: &str) -> Result<Self, InvalidExpression> {
        Self::compile_over(text, Over::Batch)
    }

    /// Compiles an expression over these variables.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_over(text: &str, over: Over) -> Result<Self, InvalidExpression> {
        let (tree, reads, member) = tree::compile(text, over)?;
        Ok(Self { text: text.to_owned(), tree, reads, member })
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the variables that it reads.
    #[must_use]
    pub const fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Returns its value. An expression that only names a member returns it with all digits of its numbers; others calculate with
    /// 64-bit integers and doubles.
    ///
    /// # Errors
    /// [`EvaluationError`] when it cannot be evaluated, or when JSON cannot represent the value.
    pub fn value(&self, scope: &Scope<'_>) -> Result<Exact, EvaluationError> {
        match self.member.as_ref().and_then(|member| scope.find(member)) {
            Some(found) => found,
            None => scope.resolve_json(&self.tree),
        }
    }

    /// Returns whether it is true.
    ///
    /// # Errors
    /// [`EvaluationError`] when it cannot be evaluated, or is not a boolean.
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        match scope.resolve(&self.tree)? {
            Cel::Bool(truth) => Ok(truth),
            other => Err(EvaluationError::WrongType { given: json::name(&other), wanted: "true or false" }),
        }
    }

    /// Returns its value as a list.
    ///
    /// # Errors
    /// [`EvaluationError`] when it cannot be evaluated, or is not a list.
    pub fn list(&self, scope: &Scope<'_>) -> Result<Vec<Exact>, EvaluationError> {
        self.value(scope)?.into_items().map_err(|other| EvaluationError::WrongType {
            given: json::name(&json::to_cel(other.marked())),
            wanted: "a list",
        })
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

#[cfg(test)]
mod tests;
