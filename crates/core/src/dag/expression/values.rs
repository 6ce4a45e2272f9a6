//! The variables of expressions.

use super::super::rule::Outcome;
use crate::json::Exact;

/// The result of one predecessor.
#[derive(Clone, Copy, Debug)]
pub struct TaskValue<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its outcome.
    pub state: Outcome,
    /// The value it returned; null unless it succeeded with a result.
    pub output: &'a Exact,
}

/// The item of one job of a task with `each`.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The item.
    pub value: &'a Exact,
    /// Its index in the list, from 0.
    pub index: u32,
}

/// The variables for the expressions of one task.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The input of the batch.
    pub input: &'a Exact,
    /// The tick of the batch; an empty object without one.
    pub tick: &'a Exact,
    /// The results of the task's direct predecessors.
    pub tasks: &'a [TaskValue<'a>],
    /// The item, when the payload of a task with `each` is rendered.
    pub item: Option<Item<'a>>,
    /// The event, in expressions [over one](super::Over::Event).
    pub event: Option<&'a Exact>,
}

impl<'a> Values<'a> {
    /// Returns the variables of expressions over an event.
    #[must_use]
    pub fn of_event(event: &'a Exact) -> Self {
        Self { input: event, tick: event, tasks: &[], item: None, event: Some(event) }
    }
}
