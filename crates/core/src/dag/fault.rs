//! What is wrong with a definition.

use std::fmt;

use thiserror::Error;

use super::expression::InvalidExpression;
use super::rule::Rule;
use super::schema::InvalidSchema;
use super::template::InvalidTemplate;
use crate::error::InvalidJob;

/// How many faults are told at once.
pub const FAULTS_MAX: usize = 100;
/// How many names stand in one fault.
const NAMES_MAX: usize = 20;

/// A definition that cannot run. All that was found, but no more than [`FAULTS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDag {
    /// The DAG's name, shortened.
    pub name: String,
    /// What is wrong, by task.
    pub faults: Vec<Fault>,
    /// How many more there are.
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

/// One thing that is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its own name.
    #[error("{0}")]
    Name(InvalidJob),
    /// What its input must look like.
    #[error("{0}")]
    InputSchema(InvalidSchema),
    /// Nothing to do.
    #[error("it has no tasks")]
    NoTasks,
    /// Every task waits for another one.
    #[error("every task waits for another one, so none can be the first")]
    NoRoot,
    /// Too much of something.
    #[error("it has {given} {what}; at most {max} are possible")]
    TooMany {
        /// Tasks, edges or bytes.
        what: &'static str,
        /// How many there are.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// A task's key.
    #[error("a task's key: {0}")]
    Key(InvalidJob),
    /// A key that two tasks have.
    #[error("two tasks have the key {task:?}")]
    DuplicateTask {
        /// The key.
        task: String,
    },
    /// A setting that no job can have.
    #[error("task {task:?}: {invalid}")]
    Task {
        /// Its key.
        task: String,
        /// What is wrong.
        #[source]
        invalid: InvalidJob,
    },
    /// A task that says nothing, or several things, or goes over a list without a kind.
    #[error(
        "task {task:?} does not say one thing to do: give a kind (and each, for a list), a bulk or a dag"
    )]
    Work {
        /// Its key.
        task: String,
    },
    /// A task that waits for itself.
    #[error("task {task:?} comes after itself")]
    SelfEdge {
        /// Its key.
        task: String,
    },
    /// The same predecessor twice.
    #[error("task {task:?} comes after {after:?} twice")]
    DuplicateEdge {
        /// Its key.
        task: String,
        /// The predecessor.
        after: String,
    },
    /// A predecessor that there is not.
    #[error("task {task:?} comes after {after:?}, which is no task{}", meant(.nearest))]
    UnknownPredecessor {
        /// Its key.
        task: String,
        /// What it waits for.
        after: String,
        /// Keys that look like it, best first.
        nearest: Vec<String>,
    },
    /// A rule about predecessors without any.
    #[error("task {task:?} has the rule {rule}, which needs predecessors, and has none")]
    RuleOfRoot {
        /// Its key.
        task: String,
        /// The rule.
        rule: Rule,
    },
    /// Tasks that wait for one another.
    #[error("a cycle: {}", cycle(.tasks))]
    Cycle {
        /// Their keys, each before the next, and the last before the first.
        tasks: Vec<String>,
    },
    /// Tasks that only a cycle leads to.
    #[error("behind a cycle, so never reached: {}", names(.tasks))]
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
        /// What is wrong.
        #[source]
        invalid: InvalidExpression,
    },
    /// A payload whose expressions do not compile.
    #[error("task {task:?}, payload: {invalid}")]
    Template {
        /// Its key.
        task: String,
        /// What is wrong, and where.
        #[source]
        invalid: InvalidTemplate,
    },
    /// An expression that reads a task which may not have ended.
    #[error("task {task:?}, {place}: it reads {read:?}, which it does not come after")]
    NotAPredecessor {
        /// Its key.
        task: String,
        /// Where.
        place: &'static str,
        /// The task that it reads.
        read: String,
    },
    /// An item where there is none.
    #[error("task {task:?}, {place}: there is no item here; only the payload of a task with each has one")]
    NoItem {
        /// Its key.
        task: String,
        /// Where.
        place: &'static str,
    },
}

impl Fault {
    /// Whose fault it is; of several tasks the first.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::DuplicateTask { task }
            | Self::Task { task, .. }
            | Self::Work { task }
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
            Self::TooMany { .. } | Self::Key(_) => None,
        }
    }

    /// Which field of the definition itself it is about.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Name(_) => Some("name"),
            Self::InputSchema(_) => Some("input_schema"),
            _ => None,
        }
    }

    /// Whether it can come from another field of the same task that could not be read.
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
