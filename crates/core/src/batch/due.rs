//! A task whose rule holds: what it becomes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::ITEMS_MAX;
use super::nominal::NominalTime;
use super::start::check_fit;
use crate::dag::definition::{Task, Work};
use crate::dag::expression::{
    EvaluationError, Expression, Item, LITTLE_STEPS_MAX, STEPS_MAX, Scope, TaskValue, Values,
};
use crate::dag::json::weight_of_json;
use crate::dag::rule::Outcome;
use crate::dag::stack;
use crate::dag::template::{Template, count_expressions};
use crate::finish::Failure;
use crate::ident::BatchId;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_payload;

/// The error code of a task whose expressions have no value.
pub const EXPRESSION: &str = "expression";
/// The error code of a task that reads more than it may.
pub const READS_TOO_MUCH: &str = "reads_too_much";

/// The error code of a task whose bulk job or DAG does not exist, or does not take what it is given.
pub const CANNOT_START: &str = "cannot_start";
/// How many bytes the expressions of a task have together that are evaluated within a transaction: they are compiled first.
const LITTLE_BYTES: usize = 1_000;

/// How long a store works out tasks that take much, but for the last one, before it writes what they become.
pub const WORKS_OUT_FOR: Duration = Duration::from_millis(500);

/// How many tasks that take much a store notes in one transaction, with all that they read.
pub const LARGE_MAX: usize = 16;
/// How many of these are of one batch: others have their turn.
pub const LARGE_OF_BATCH_MAX: usize = 4;

/// How much work it may be to find what a task becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// So little that it can be done within a transaction.
    Little,
    /// All that expressions and a schema may take, which can be a second: outside of transactions, where nobody waits for it.
    Full,
}

/// A task whose rule holds, with all that its expressions read.
#[derive(Clone, Debug, PartialEq)]
pub struct DueTask {
    /// Its batch.
    pub batch: BatchId,
    /// Its number.
    pub task: u32,
    /// What it does.
    pub spec: Task,
    /// The input of its batch.
    pub input: Arc<Value>,
    /// The tick that its batch is for.
    pub nominal: Option<NominalTime>,
    /// What the predecessors left that it reads.
    pub reads: Vec<ReadTask>,
    /// Of an item of a task that goes over a list: the item and its place.
    pub item: Option<(Value, u32)>,
    /// Of a task that is a batch: the schema for the input of its DAG, if that has one.
    pub schema: Option<Value>,
}

/// What one predecessor left.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadTask {
    /// Its key.
    pub key: String,
    /// How it ended.
    pub state: Outcome,
    /// What it returned.
    pub output: Value,
}

/// What a due task becomes.
#[derive(Clone, Debug, PartialEq)]
pub enum Becomes {
    /// Its condition is false.
    Skipped,
    /// A job of its kind with this payload.
    Job(Value),
    /// A job for each of these items, whose payloads are made later.
    Items(Vec<Value>),
    /// A run of its bulk job with these parameters.
    Bulk(Value),
    /// A batch of its DAG with this input.
    Batch(Value),
    /// It has failed: an expression has no value.
    Failed(Failure),
}

impl DueTask {
    /// What it becomes; `None`: that takes more than this effort. Its condition and its list are looked at for the task as a whole, its
    /// payload for each item.
    #[must_use]
    pub fn becomes(&self, effort: Effort) -> Option<Becomes> {
        if effort == Effort::Little && !self.is_little() {
            return None;
        }
        let steps = if effort == Effort::Little { LITTLE_STEPS_MAX } else { STEPS_MAX };
        stack::large(|| {
            let reads: Vec<TaskValue<'_>> = self
                .reads
                .iter()
                .map(|read| TaskValue { key: &read.key, state: read.state, output: &read.output })
                .collect();
            let item = self.item.as_ref().map(|(value, index)| Item { value, index: *index });
            let tick = self.nominal.as_ref().map_or_else(|| Value::Object(Map::new()), NominalTime::value);
            let input = if self.mentions("input") { &*self.input } else { &Value::Null };
            let values = Values { input, tick: &tick, tasks: &reads, item };
            let scope = Scope::new(&values, steps);
            let becomes = self.work_out(&scope).unwrap_or_else(Becomes::Failed);
            (effort == Effort::Full || !scope.is_exhausted()).then_some(becomes)
        })
    }

    /// Whether all that is looked at is small; nothing is compiled for this answer.
    fn is_little(&self) -> bool {
        let texts = self.spec.when.iter().chain(&self.spec.each).map(String::len).sum::<usize>();
        let item = self.item.as_ref().map(|(item, _)| item);
        let input = self.mentions("input").then_some(&*self.input);
        let values = input.into_iter().chain([&self.spec.payload]).chain(item);
        let parts = values.chain(self.reads.iter().map(|read| &read.output)).fold(0, |sum, value| {
            if sum > LITTLE_STEPS_MAX { sum } else { sum + weight_of_json(value, LITTLE_STEPS_MAX - sum) }
        });
        self.schema.is_none()
            && parts < LITTLE_STEPS_MAX
            && texts + count_expressions(&self.spec.payload).1 <= LITTLE_BYTES
    }

    /// Whether an expression may read this variable: what none reads, however large, is not looked at.
    fn mentions(&self, variable: &str) -> bool {
        fn within(value: &Value, variable: &str) -> bool {
            match value {
                Value::String(text) => text.contains(variable),
                Value::Array(items) => items.iter().any(|item| within(item, variable)),
                Value::Object(members) => members.values().any(|member| within(member, variable)),
                _ => false,
            }
        }
        let mut texts = self.spec.when.iter().chain(&self.spec.each);
        texts.any(|text| text.contains(variable)) || within(&self.spec.payload, variable)
    }

    fn work_out(&self, scope: &Scope) -> Result<Becomes, Failure> {
        let failed = |message: String| Failure { code: EXPRESSION.to_owned(), message };
        if self.item.is_none() {
            if let Some(when) = &self.spec.when
                && !evaluate("when", when, |when| when.holds(scope)).map_err(failed)?
            {
                return Ok(Becomes::Skipped);
            }
            if let Some(each) = &self.spec.each {
                let items = evaluate("each", each, |each| each.list(scope)).map_err(failed)?;
                return if items.len() > ITEMS_MAX {
                    let count = items.len();
                    Err(failed(format!("each: it gives {count} items; at most {ITEMS_MAX} are possible")))
                } else {
                    Ok(Becomes::Items(items))
                };
            }
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

    fn payload(&self, scope: &Scope) -> Result<Value, String> {
        let template = Template::compile(&self.spec.template()).map_err(|e| format!("payload: {e}"))?;
        let payload = template.render(scope, PAYLOAD_BYTES_MAX).map_err(|e| format!("payload: {e}"))?;
        check_payload(&payload.to_string(), PAYLOAD_BYTES_MAX).map_err(|e| e.to_string())?;
        Ok(payload)
    }

    /// Checks the input of the batch that the task is.
    fn check_input(&self, input: &Value) -> Result<(), Failure> {
        let Some(schema) = &self.schema else { return Ok(()) };
        check_fit(schema, input)
            .map_err(|invalid| Failure { code: CANNOT_START.to_owned(), message: invalid.to_string() })
    }
}

/// Works out what tasks become that take much: the first, and the others until it is over.
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

fn evaluate<T>(
    place: &str,
    text: &str,
    value: impl FnOnce(&Expression) -> Result<T, EvaluationError>,
) -> Result<T, String> {
    let expression = Expression::compile(text).map_err(|e| format!("{place}: {e}"))?;
    value(&expression).map_err(|e| format!("{place} = {text:?}: {e}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn due(spec: Task) -> DueTask {
        let read = |key: &str, state, output| ReadTask { key: key.to_owned(), state, output };
        DueTask {
            batch: BatchId::new(),
            task: 0,
            spec,
            input: Arc::new(json!({"day": "2026-11-01", "to": ["a", "b"]})),
            nominal: None,
            reads: vec![
                read("count", Outcome::Succeeded, json!({"rows": 3})),
                read("load", Outcome::Skipped, Value::Null),
            ],
            item: None,
            schema: None,
        }
    }

    #[test]
    fn a_condition_decides_before_the_payload_is_made() {
        let broken = Task::job("mail").payload(json!("${ input.nothing }"));
        assert_eq!(
            due(broken.clone().when("tasks.count.output.rows > 5")).becomes(Effort::Full).unwrap(),
            Becomes::Skipped
        );
        let Becomes::Failed(failure) =
            due(broken.when("tasks.count.output.rows == 3")).becomes(Effort::Full).unwrap()
        else {
            panic!("a payload without a value");
        };
        assert_eq!(failure.code, EXPRESSION);
        assert!(failure.message.starts_with("payload: "), "{}", failure.message);
    }

    #[test]
    fn a_payload_sees_what_predecessors_left() {
        let spec = Task::job("mail").payload(json!({
            "day": "${ input.day }",
            "text": "${ tasks.count.output.rows } rows, load was ${ tasks.load.state }",
        }));
        let expected = json!({"day": "2026-11-01", "text": "3 rows, load was skipped"});
        assert_eq!(due(spec).becomes(Effort::Full).unwrap(), Becomes::Job(expected));
    }

    #[test]
    fn expressions_see_the_tick_of_the_batch() {
        let at = "2026-11-01T23:30:00Z".parse().unwrap();
        let nominal = NominalTime { at, zone: "Europe/Berlin".to_owned() };
        let with_tick = |spec| DueTask { nominal: Some(nominal.clone()), ..due(spec) };
        let dates = Task::job("mail").payload(json!("${ tick.previous_date } to ${ tick.date }"));
        assert_eq!(
            with_tick(dates.clone()).becomes(Effort::Full).unwrap(),
            Becomes::Job(json!("2026-11-01 to 2026-11-02"))
        );
        let Becomes::Failed(failure) = due(dates.clone()).becomes(Effort::Full).unwrap() else {
            panic!("there is no tick")
        };
        assert_eq!(failure.code, EXPRESSION);
        let if_any = |when: &str| dates.clone().payload(json!(1)).when(when);
        for when in ["size(tick) == 0", "!has(tick.date)"] {
            assert_eq!(due(if_any(when)).becomes(Effort::Full).unwrap(), Becomes::Job(json!(1)), "{when}");
            assert_eq!(with_tick(if_any(when)).becomes(Effort::Full).unwrap(), Becomes::Skipped, "{when}");
        }
        let either = json!("${ has(tick.date) ? tick.date : input.day }");
        assert_eq!(
            due(dates.clone().payload(either)).becomes(Effort::Full).unwrap(),
            Becomes::Job(json!("2026-11-01"))
        );
    }

    #[test]
    fn a_list_becomes_items_and_each_item_a_job() {
        let spec = Task::each("mail", "input.to").payload(json!({"to": "${ item }", "n": "${ index }"}));
        assert_eq!(
            due(spec.clone()).becomes(Effort::Full).unwrap(),
            Becomes::Items(vec![json!("a"), json!("b")])
        );
        let item = DueTask { item: Some((json!("b"), 1)), ..due(spec) };
        assert_eq!(item.becomes(Effort::Full).unwrap(), Becomes::Job(json!({"to": "b", "n": 1})));
    }

    #[test]
    fn an_expression_without_a_value_says_which_one() {
        let Becomes::Failed(failure) =
            due(Task::job("mail").when("input.day > 3")).becomes(Effort::Full).unwrap()
        else {
            panic!("a text is not more than a number");
        };
        assert!(failure.message.starts_with("when = \"input.day > 3\": "), "{}", failure.message);
        let Becomes::Failed(failure) = due(Task::each("mail", "input.day")).becomes(Effort::Full).unwrap()
        else {
            panic!("a text is no list");
        };
        assert!(failure.message.contains("a list"), "{}", failure.message);
    }

    #[test]
    fn bulk_jobs_and_batches_get_their_payload_too() {
        let payload = json!({"day": "${ input.day }"});
        let expected = json!({"day": "2026-11-01"});
        assert_eq!(
            due(Task::bulk("push").payload(payload.clone())).becomes(Effort::Full).unwrap(),
            Becomes::Bulk(expected.clone())
        );
        assert_eq!(
            due(Task::batch("etl").payload(payload)).becomes(Effort::Full).unwrap(),
            Becomes::Batch(expected)
        );
    }
}
