//! Faults of DAG definitions.

use std::fmt;

use thiserror::Error;

use super::expression::InvalidExpression;
use super::rule::Rule;
use super::schema::InvalidSchema;
use super::template::InvalidTemplate;
use super::wait::InvalidWait;
use crate::job::error::InvalidJob;

/// The maximum number of faults that are reported together.
pub const FAULTS_MAX: usize = 100;
/// The maximum number of names in one fault.
const NAMES_MAX: usize = 20;

/// An invalid definition, with all faults found, but at most [`FAULTS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDag {
    /// The DAG's name, shortened.
    pub name: String,
    /// The faults, by task.
    pub faults: Vec<Fault>,
    /// The number of further faults.
    pub left_out: usize,
}

impl fmt::Display for InvalidDag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the DAG {:?} cannot run:", self.name)?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n- {fault}"))?;
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n- and {more} more"),
        }
    }
}

impl std::error::Error for InvalidDag {}

/// A fault of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name of the DAG is invalid.
    #[error("{0}")]
    Name(InvalidJob),
    /// The input schema is invalid.
    #[error("{0}")]
    InputSchema(InvalidSchema),
    /// It contains a NUL character, which not every store can keep.
    #[error("it holds a NUL character (\\u0000), which cannot be stored; remove it")]
    Nul,
    /// The DAG has no tasks.
    #[error("it has no tasks")]
    NoTasks,
    /// Every task has a predecessor.
    #[error("every task has a predecessor, so no task can start")]
    NoRoot,
    /// A limit is exceeded.
    #[error("it has {given} {what}; at most {max} are allowed")]
    TooMany {
        /// The limited quantity: tasks, edges or bytes.
        what: &'static str,
        /// The number found.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// A task's key is invalid.
    #[error("a task's key: {0}")]
    Key(InvalidJob),
    /// Two tasks have the same key.
    #[error("two tasks have the key {task:?}")]
    DuplicateTask {
        /// The key.
        task: String,
    },
    /// A setting is invalid for jobs.
    #[error("task {task:?}: {invalid}")]
    Task {
        /// Its key.
        task: String,
        /// The reason.
        #[source]
        invalid: InvalidJob,
    },
    /// A task that specifies no work or several kinds of work, or `each` without a kind.
    #[error(
        "task {task:?} must specify exactly one kind of work: a kind (and each, for a list), a bulk, a dag or a wait"
    )]
    Work {
        /// Its key.
        task: String,
    },
    /// What a task waits for is invalid.
    #[error("task {task:?}, wait: {invalid}")]
    Wait {
        /// Its key.
        task: String,
        /// The reason.
        #[source]
        invalid: InvalidWait,
    },
    /// The kind of a task is a bulk job.
    #[error("task {task:?}: the kind {kind:?} is a bulk job; write bulk = {kind:?} instead")]
    BulkKind {
        /// Its key.
        task: String,
        /// The kind.
        kind: String,
    },
    /// A task is its own predecessor.
    #[error("task {task:?} is its own predecessor")]
    SelfEdge {
        /// Its key.
        task: String,
    },
    /// A predecessor is listed twice.
    #[error("task {task:?} lists the predecessor {after:?} twice")]
    DuplicateEdge {
        /// Its key.
        task: String,
        /// The predecessor.
        after: String,
    },
    /// A predecessor does not exist.
    #[error("task {task:?} has the predecessor {after:?}, which is not a task{}", meant(.nearest))]
    UnknownPredecessor {
        /// Its key.
        task: String,
        /// The given key of the predecessor.
        after: String,
        /// Similar keys, best match first.
        nearest: Vec<String>,
    },
    /// A rule that needs predecessors, on a task without any.
    #[error("task {task:?} has the rule {rule}, which needs predecessors, but has none")]
    RuleOfRoot {
        /// Its key.
        task: String,
        /// The rule.
        rule: Rule,
    },
    /// A dependency cycle.
    #[error("a cycle: {}", cycle(.tasks))]
    Cycle {
        /// Their keys; each task is a predecessor of the next, and the last one of the first.
        tasks: Vec<String>,
    },
    /// Tasks that are reachable only through a cycle.
    #[error("unreachable, because they follow a cycle: {}", names(.tasks))]
    Unreachable {
        /// Their keys.
        tasks: Vec<String>,
    },
    /// An expression that does not compile.
    #[error("task {task:?}, {place}: {invalid}")]
    Expression {
        /// Its key.
        task: String,
        /// `when` or `each`.
        place: &'static str,
        /// The reason.
        #[source]
        invalid: InvalidExpression,
    },
    /// A payload whose expressions do not compile.
    #[error("task {task:?}, payload: {invalid}")]
    Template {
        /// Its key.
        task: String,
        /// The reason and the location.
        #[source]
        invalid: InvalidTemplate,
    },
    /// An expression that reads a task that is not a predecessor.
    #[error("task {task:?}, {place}: it reads {read:?}, which is not one of its predecessors")]
    NotAPredecessor {
        /// Its key.
        task: String,
        /// The field with the expression.
        place: &'static str,
        /// The task that it reads.
        read: String,
    },
    /// An expression that reads `item` or `index` where there is no item.
    #[error("task {task:?}, {place}: item and index exist only in the payload of a task with each")]
    NoItem {
        /// Its key.
        task: String,
        /// The field with the expression.
        place: &'static str,
    },
}

impl Fault {
    /// Returns the key of the faulty task; the first one if there are several.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::DuplicateTask { task }
            | Self::Task { task, .. }
            | Self::Work { task }
            | Self::Wait { task, .. }
            | Self::BulkKind { task, .. }
            | Self::SelfEdge { task }
            | Self::DuplicateEdge { task, .. }
            | Self::UnknownPredecessor { task, .. }
            | Self::RuleOfRoot { task, .. }
            | Self::Expression { task, .. }
            | Self::Template { task, .. }
            | Self::NotAPredecessor { task, .. }
            | Self::NoItem { task, .. } => Some(task),
            Self::Cycle { tasks } | Self::Unreachable { tasks } => tasks.first().map(String::as_str),
            Self::Name(_) | Self::InputSchema(_) | Self::NoTasks | Self::NoRoot => None,
            Self::TooMany { .. } | Self::Key(_) | Self::Nul => None,
        }
    }

    /// Returns the field of the definition itself that the fault is in.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Name(_) => Some("name"),
            Self::InputSchema(_) => Some("input_schema"),
            _ => None,
        }
    }

    /// Returns whether the fault can be a consequence of another field of the same task that could not be parsed.
    #[must_use]
    pub const fn can_follow_from_another_field(&self) -> bool {
        matches!(
            self,
            Self::Work { .. } | Self::RuleOfRoot { .. } | Self::NotAPredecessor { .. } | Self::NoItem { .. }
        )
    }
}

fn meant(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        nearest => format!("; did you mean {}?", nearest.join(" or ")),
    }
}

fn names(tasks: &[String]) -> String {
    let more = tasks.len().saturating_sub(NAMES_MAX);
    let names = tasks[..tasks.len() - more].join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

fn cycle(tasks: &[String]) -> String {
    let Some(first) = tasks.first() else { return String::new() };
    let more = tasks.len().saturating_sub(NAMES_MAX);
    let path = tasks[..tasks.len() - more].join(" → ");
    if more == 0 {
        format!("{path} → {first}")
    } else {
        format!("{path} → … ({more} more) → {first}")
    }
}
