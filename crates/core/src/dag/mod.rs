//! Batches: DAGs of jobs. What they are, whether they can run, what follows the end of a task, and what a whole
//! batch is to be called. Pure: stores keep the counters, and this decides.
//!
//! A [`Definition`](definition::Definition) is what people write; a [`Dag`](checked::Dag) is one that was checked,
//! with its [version](version::Version) and its [graph](graph::Graph), whose tasks have dense numbers in the order
//! of their keys, the same for everybody who has the version. [`decide`](rule::decide) says what a task does by how
//! its predecessors ended, and [`Progress`](progress::Progress) what the end of some tasks does to all others.
//!
//! | part of a definition | may be an expression of CEL |
//! |---|---|
//! | `when` | a truth value: whether the task runs, once its rule has said so |
//! | `each` | a list: a job for each of its items |
//! | `payload` | strings `"${ … }"` become the value, `"to ${ … }"` text with the value in it; `$${` is a plain `${` |
//!
//! An expression sees `input` (the batch's), `tasks.KEY.output` and `tasks.KEY.state` of the task's direct
//! predecessors, and in the payload of a task with `each` also `item` and `index`.

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
pub(crate) mod stack;
pub mod state;
pub mod stored;
pub mod template;
pub mod version;

pub use path::CriticalPath;
