//! DAGs of jobs: definitions, their checks, trigger rules, and the state of a batch. Pure functions; stores keep the counters.
//!
//! A [`Definition`](definition::Definition) is written by users. A [`Dag`](checked::Dag) is a checked definition with
//! its [version](version::Version) and its [graph](graph::Graph). The tasks of a graph have dense numbers in the order
//! of their keys, the same for every user of the version. [`decide`](rule::decide) determines what a task does from the
//! outcomes of its predecessors, and [`Progress`](progress::Progress) how the end of some tasks affects all others.
//!
//! | field of a task | value as a CEL expression |
//! |---|---|
//! | `when` | a boolean: whether the task runs once its rule holds |
//! | `each` | a list: one job per item |
//! | `wait` | in `until`, a string as in `payload`: a time (RFC 3339) |
//! | `payload` | a string `"${ … }"` becomes the value, `"to ${ … }"` a text that contains the value; `$${` is a literal `${` |
//!
//! An expression can read `input` and `tick` of the batch, `tasks.KEY.output` and `tasks.KEY.state` of the task's
//! direct predecessors, and, in the payload of a task with `each`, also `item` and `index`.

pub mod checked;
mod counting;
pub mod definition;
mod edges;
pub mod expression;
pub mod fault;
pub mod graph;
pub(crate) mod json;
pub mod model;
mod path;
pub mod progress;
pub mod rule;
pub mod schema;
mod schema_cost;
mod schema_size;
mod span;
pub(crate) mod stack;
pub mod state;
pub mod stored;
pub mod template;
pub mod version;
pub mod wait;

pub use path::CriticalPath;
