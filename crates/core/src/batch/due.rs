//! Evaluation of due tasks: the job, items, bulk run or batch that a task becomes when its rule holds.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::nominal::NominalTime;
use super::start::check_fit;
use super::{ITEMS_MAX, READ_BYTES_MAX};
use crate::dag::definition::{Task, Work};
use crate::dag::expression::{
    EvaluationError, Expression, Item, LITTLE_STEPS_MAX, STEPS_MAX, Scope, TaskValue, Values,
};
use crate::dag::json::weight_of_json;
use crate::dag::rule::Outcome;
use crate::dag::stack;
use crate::dag::template::{Template, count_expressions};
use crate::dag::wait::{self, Awaited};
use crate::finish::{Failure, UNREADABLE};
use crate::ident::BatchId;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::{Exact, check_payload};

/// The error code of a task with an expression that cannot be evaluated.
pub const EXPRESSION: &str = "expression";
/// The error code of a task that reads more data than allowed.
pub const READS_TOO_MUCH: &str = "reads_too_much";
/// Why a task whose condition is false is skipped.
pub const CONDITION_IS_FALSE: &str = "its condition is false";

/// The error code of a task whose bulk job or DAG does not exist, or rejects its input.
pub const CANNOT_START: &str = "cannot_start";
/// The maximum total size, in bytes, of a task's expressions that are evaluated within a transaction. The limit bounds the
/// time to compile them.
const LITTLE_BYTES: usize = 1_000;

/// The maximum size of a rendered time.
const TIME_BYTES_MAX: usize = 1_000;

/// How long a store evaluates expensive tasks before it writes the results. The last evaluation may exceed this.
pub const WORKS_OUT_FOR: Duration = Duration::from_millis(500);

/// The maximum number of expensive tasks, with everything they read, that a store loads in one transaction.
pub const LARGE_MAX: usize = 16;
/// The maximum number of these from one batch, so that other batches are not starved.
pub const LARGE_OF_BATCH_MAX: usize = 4;

/// Returns the failure of a task that reads more data than allowed.
#[must_use]
pub fn reads_too_much() -> Failure {
    let message = format!("the results that it reads have more than {READ_BYTES_MAX} bytes");
    Failure { code: READS_TOO_MUCH.to_owned(), message }
}

/// Returns the failure of a task that reads a value which is not valid JSON.
pub fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure { code: UNREADABLE.to_owned(), message: format!("the values it reads cannot be parsed: {error}") }
}

/// The amount of work allowed to evaluate a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Little enough to be done within a transaction.
    Little,
    /// Everything that expressions and a schema may use, which can take a second. Use it outside of transactions, where no
    /// other client waits.
    Full,
}

/// A task whose rule holds, with the data that its expressions read.
#[derive(Clone, Debug, PartialEq)]
pub struct DueTask {
    /// Its batch.
    pub batch: BatchId,
    /// Its number.
    pub task: u32,
    /// Its definition.
    pub spec: Arc<Task>,
    /// The input of its batch.
    pub input: Arc<Exact>,
    /// The nominal time (tick) of its batch.
    pub nominal: Option<NominalTime>,
    /// The results of the predecessors that its expressions name.
    pub predecessors: Arc<[ReadTask]>,
    /// For an item of a task with `each`: the item and its index.
    pub item: Option<(Exact, u32)>,
    /// For a task that is a batch: the input schema of its DAG, if there is one.
    pub schema: Option<Arc<Value>>,
}

/// The result of one predecessor.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadTask {
    /// Its key.
    pub key: String,
    /// The outcome of the predecessor.
    pub state: Outcome,
    /// The value that it returned.
    pub output: Arc<Exact>,
}

/// The result of evaluating a due task.
#[derive(Clone, Debug, PartialEq)]
pub enum Becomes {
    /// Its condition is false.
    Skipped,
    /// A job of its kind with this payload.
    Job(Exact),
    /// A job for each of these items; their payloads are rendered later.
    Items(Vec<Exact>),
    /// A run of its bulk job with these parameters.
    Bulk(Exact),
    /// A batch of its DAG with this input.
    Batch(Exact),
    /// It waits.
    Wait(Awaited),
    /// It failed, for example because an expression cannot be evaluated.
    Failed(Failure),
}

impl DueTask {
    /// Evaluates the task; `None` when that needs more than this effort. The condition and the list are evaluated once for the task,
    /// the payload for each item.
    #[must_use]
    pub fn becomes(&self, effort: Effort) -> Option<Becomes> {
        if effort == Effort::Little && !self.is_little() {
            return None;
        }
        let steps = if effort == Effort::Little { LITTLE_STEPS_MAX } else { STEPS_MAX };
        stack::large(|| {
            let reads: Vec<TaskValue<'_>> = self
                .readable()
                .iter()
                .map(|read| TaskValue { key: &read.key, state: read.state, output: &read.output })
                .collect();
            let item = self.item.as_ref().map(|(value, index)| Item { value, index: *index });
            let tick = self.nominal.as_ref().map_or_else(|| Value::Object(Map::new()), NominalTime::value);
            let (tick, null) = (Exact::from(tick), Exact::default());
            let input = if self.mentions("input") { &*self.input } else { &null };
            let values = Values { input, tick: &tick, tasks: &reads, item, event: None };
            let scope = Scope::new(&values, steps);
            let becomes = self.work_out(&scope).unwrap_or_else(Becomes::Failed);
            (effort == Effort::Full || !scope.is_exhausted()).then_some(becomes)
        })
    }

    /// Returns whether everything that has to be evaluated is small. Nothing is compiled for this check.
    fn is_little(&self) -> bool {
        let texts = self.conditions().map(String::len).sum::<usize>();
        let item = self.item.as_ref().map(|(item, _)| item);
        let input = self.mentions("input").then_some(&*self.input);
        let read = input.into_iter().chain(item).chain(self.readable().iter().map(|read| &*read.output));
        let templated = self.spec.templated();
        let parts = read.map(Exact::marked).chain([&*templated]).fold(0, |sum, value| {
            if sum > LITTLE_STEPS_MAX { sum } else { sum + weight_of_json(value, LITTLE_STEPS_MAX - sum) }
        });
        self.schema.is_none()
            && parts < LITTLE_STEPS_MAX
            && texts + count_expressions(&templated).1 <= LITTLE_BYTES
    }

    /// Returns whether an expression may read this variable. A variable that no expression reads is not evaluated, however large it is.
    fn mentions(&self, variable: &str) -> bool {
        fn within(value: &Value, variable: &str) -> bool {
            match value {
                Value::String(text) => text.contains(variable),
                Value::Array(items) => items.iter().any(|item| within(item, variable)),
                Value::Object(members) => members.values().any(|member| within(member, variable)),
                _ => false,
            }
        }
        self.conditions().any(|text| text.contains(variable)) || within(&self.spec.templated(), variable)
    }

    /// Returns the condition and the expression of the list. They are evaluated for the task, and not again for its items.
    fn conditions(&self) -> impl Iterator<Item = &String> {
        let is_item = self.item.is_some();
        self.spec.when.iter().chain(&self.spec.each).filter(move |_| !is_item)
    }

    /// Returns the results that an expression may read.
    fn readable(&self) -> &[ReadTask] {
        if self.mentions("tasks") { &self.predecessors } else { &[] }
    }

    fn work_out(&self, scope: &Scope<'_>) -> Result<Becomes, Failure> {
        let failed = |message: String| Failure { code: EXPRESSION.to_owned(), message };
        if self.item.is_none() {
            if let Some(when) = &self.spec.when
                && !evaluate("when", when, |when| when.holds(scope)).map_err(failed)?
            {
                return Ok(Becomes::Skipped);
            }
            if let Some(each) = &self.spec.each {
                let items = evaluate("each", each, |each| each.list(scope)).map_err(failed)?;
                return check_items(&items).map(|()| Becomes::Items(items)).map_err(failed);
            }
        }
        if let Some(wait) = &self.spec.wait {
            let until = wait.until.as_deref().map(|until| time(until, scope)).transpose();
            return Ok(Becomes::Wait(Awaited::of(wait, until.map_err(failed)?)));
        }
        let payload = self.payload(scope).map_err(failed)?;
        Ok(match self.spec.work() {
            Some(Work::Bulk { .. }) => Becomes::Bulk(payload),
            Some(Work::Batch { .. }) => {
                self.check_input(&payload)?;
                Becomes::Batch(payload)
            }
            _ => Becomes::Job(payload),
        })
    }

    fn payload(&self, scope: &Scope<'_>) -> Result<Exact, String> {
        let template = Template::compile(&self.spec.template()).map_err(|e| format!("payload: {e}"))?;
        let payload = template.render(scope, PAYLOAD_BYTES_MAX).map_err(|e| format!("payload: {e}"))?;
        check_payload(&payload.to_string(), PAYLOAD_BYTES_MAX).map_err(|e| e.to_string())?;
        Ok(payload)
    }

    /// Checks the input of a task that is a batch.
    fn check_input(&self, input: &Exact) -> Result<(), Failure> {
        let Some(schema) = &self.schema else { return Ok(()) };
        check_fit(schema, &input.rounded())
            .map_err(|invalid| Failure { code: CANNOT_START.to_owned(), message: invalid.to_string() })
    }
}

/// Renders the time until which a task waits.
fn time(until: &str, scope: &Scope<'_>) -> Result<Timestamp, String> {
    let failed = |why: &dyn std::fmt::Display| format!("until = {until:?}: {why}");
    let template = Template::compile(&Value::from(until)).map_err(|e| failed(&e))?;
    let time = template.render(scope, TIME_BYTES_MAX).map_err(|e| failed(&e))?.rounded();
    let text = time.as_str().ok_or_else(|| failed(&"it is not a text with a time (RFC 3339)"))?;
    wait::time(text).map_err(|e| failed(&e))
}

/// Evaluates expensive tasks: always the first one, and then more until `is_over` returns true.
#[must_use]
pub fn work_out(due: Vec<DueTask>, is_over: impl Fn() -> bool) -> Vec<(DueTask, Becomes)> {
    let mut worked_out = Vec::with_capacity(due.len());
    for task in due {
        if let Some(becomes) = task.becomes(Effort::Full) {
            worked_out.push((task, becomes));
        }
        if is_over() {
            break;
        }
    }
    worked_out
}

/// Checks that stores can keep the list of a task with `each`.
fn check_items(items: &[Exact]) -> Result<(), String> {
    if items.len() > ITEMS_MAX {
        return Err(format!("each: it returns {} items; at most {ITEMS_MAX} are allowed", items.len()));
    }
    // One item that a store cannot keep would stop every batch whose list is stored in the same statement.
    for (index, item) in items.iter().enumerate() {
        check_payload(&item.to_string(), PAYLOAD_BYTES_MAX).map_err(|refused| {
            refused.to_string().replacen("the payload", &format!("each: item {index}"), 1)
        })?;
    }
    Ok(())
}

fn evaluate<T>(
    place: &str,
    text: &str,
    value: impl FnOnce(&Expression) -> Result<T, EvaluationError>,
) -> Result<T, String> {
    let expression = Expression::compile(text).map_err(|e| format!("{place}: {e}"))?;
    value(&expression).map_err(|e| format!("{place} = {text:?}: {e}"))
}

#[cfg(test)]
mod tests;
