//! Definitions of DAGs as written by users: tasks and their dependencies.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::rule::Rule;
use super::span;
use super::wait::Wait;
use crate::job::{MAX_ATTEMPTS_DEFAULT, Priority, QUEUE_DEFAULT};
use crate::json::{Table, plain_option, plain_value};

/// A DAG as written in its definition, unchecked; [`Dag::check`](super::checked::Dag::check) checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DagDefinition))]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema for the input of its batches.
    #[serde(default, deserialize_with = "plain_option", skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Its tasks by key, in the order of the definition. A key that occurs twice is kept twice, so that it can be
    /// reported.
    #[serde(with = "by_key")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, Task>))]
    pub tasks: Vec<(String, Task)>,
}

impl Definition {
    /// Creates a DAG without tasks.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, input_schema: None, tasks: Vec::new() }
    }

    /// Adds a task.
    #[must_use]
    pub fn task(mut self, key: impl Into<String>, task: Task) -> Self {
        self.tasks.push((key.into(), task));
        self
    }
}

/// A task: what it runs, when it runs, and its predecessors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DagTask))]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The kind of its job, or of the jobs for the items of [`each`](Self::each).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the bulk job that it runs; the payload contains its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<String>,
    /// The name of the DAG that it runs as an inner batch; the payload is its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// An expression that returns a list; a job of the kind is created for each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// The signal or the time that it waits for, instead of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Wait>>,
    /// The payload of its job; strings in it can be [expressions](super::template).
    #[serde(default, deserialize_with = "plain_value", skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    /// The queue of its job.
    #[serde(default = "queue_default", skip_serializing_if = "is_queue_default")]
    pub queue: String,
    /// The priority of its job within the queue.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u8>, minimum = 1, maximum = 4))]
    pub priority: Priority,
    /// The group of its job. Jobs of a group run one at a time, or up to the number that its limit allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The maximum number of attempts of its job; a crash of its worker uses one.
    #[serde(default = "attempts_default", skip_serializing_if = "is_attempts_default")]
    pub max_attempts: u32,
    /// The time limit of one attempt, such as `30s` or `2h 30m`.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub timeout: Option<Duration>,
    /// The rule by which it runs, depending on the outcomes of its predecessors.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rule: Rule,
    /// A condition: the task runs if it is true, and is skipped if it is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The keys of its predecessors, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// The work of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a> {
    /// A job of a kind.
    Job {
        /// Its kind, which determines the handler.
        kind: &'a str,
    },
    /// A job of a kind for each item of a list.
    Each {
        /// Their kind, which determines the handler.
        kind: &'a str,
        /// The expression of the list.
        list: &'a str,
    },
    /// A bulk job.
    Bulk {
        /// The name of its definition.
        name: &'a str,
    },
    /// A batch.
    Batch {
        /// The name of its DAG.
        dag: &'a str,
    },
    /// None: it waits for a signal or a time.
    Wait(&'a Wait),
}

impl Task {
    /// Creates a task that is a job of `kind` with default options.
    #[must_use]
    pub fn job(kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..Self::nothing() }
    }

    /// Creates a task with a job of `kind` for each item of the list that the expression returns.
    #[must_use]
    pub fn each(kind: impl Into<String>, list: impl Into<String>) -> Self {
        Self { each: Some(list.into()), ..Self::job(kind) }
    }

    /// Creates a task that is a run of the bulk job with this name.
    #[must_use]
    pub fn bulk(name: impl Into<String>) -> Self {
        Self { bulk: Some(name.into()), ..Self::nothing() }
    }

    /// Creates a task that is a batch of the DAG with this name.
    #[must_use]
    pub fn batch(dag: impl Into<String>) -> Self {
        Self { dag: Some(dag.into()), ..Self::nothing() }
    }

    /// Creates a task that waits for a signal or a time.
    #[must_use]
    pub fn wait(wait: Wait) -> Self {
        Self { wait: Some(Box::new(wait)), ..Self::nothing() }
    }

    fn nothing() -> Self {
        Self {
            kind: None,
            bulk: None,
            dag: None,
            each: None,
            wait: None,
            payload: Value::Null,
            queue: queue_default(),
            priority: Priority::default(),
            group: None,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            timeout: None,
            rule: Rule::default(),
            when: None,
            after: Vec::new(),
        }
    }

    /// Adds predecessors.
    #[must_use]
    pub fn after<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.after.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }

    /// Sets the trigger rule.
    #[must_use]
    pub const fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// Sets the condition.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>) -> Self {
        self.when = Some(condition.into());
        self
    }

    /// Returns the template of its payload; an empty object when it has none.
    #[must_use]
    pub fn template(&self) -> Value {
        if self.payload.is_null() { Value::Object(serde_json::Map::new()) } else { self.payload.clone() }
    }

    /// Returns the part of the definition that is a template: the time until which it waits, or its payload.
    #[must_use]
    pub fn templated(&self) -> Cow<'_, Value> {
        match self.wait.as_ref().and_then(|wait| wait.until.as_ref()) {
            Some(until) => Cow::Owned(Value::String(until.clone())),
            None => Cow::Borrowed(&self.payload),
        }
    }

    /// Returns the work of the task; `None` unless exactly one kind of work is specified.
    #[must_use]
    pub fn work(&self) -> Option<Work<'_>> {
        if let Some(wait) = &self.wait {
            let is_only = [&self.kind, &self.bulk, &self.dag, &self.each].iter().all(|work| work.is_none());
            return is_only.then_some(Work::Wait(wait));
        }
        match (&self.kind, &self.bulk, &self.dag, &self.each) {
            (Some(kind), None, None, None) => Some(Work::Job { kind }),
            (Some(kind), None, None, Some(list)) => Some(Work::Each { kind, list }),
            (None, Some(name), None, None) => Some(Work::Bulk { name }),
            (None, None, Some(dag), None) => Some(Work::Batch { dag }),
            _ => None,
        }
    }
}

fn queue_default() -> String {
    QUEUE_DEFAULT.to_owned()
}

fn is_queue_default(queue: &str) -> bool {
    queue == QUEUE_DEFAULT
}

const fn attempts_default() -> u32 {
    MAX_ATTEMPTS_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_attempts_default(max_attempts: &u32) -> bool {
    *max_attempts == MAX_ATTEMPTS_DEFAULT
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Serialization of tasks as a map that preserves order and duplicates.
mod by_key {
    use super::*;

    pub(super) fn serialize<S: Serializer>(tasks: &[(String, Task)], to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(tasks.len()))?;
        tasks.iter().try_for_each(|(key, task)| map.serialize_entry(key, task))?;
        map.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Task)>, D::Error> {
        struct Tasks;

        impl<'de> Visitor<'de> for Tasks {
            type Value = Vec<(String, Task)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tasks by key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut tasks = Vec::new();
                while let Some((key, Table(task))) = map.next_entry()? {
                    tasks.push((key, task));
                }
                Ok(tasks)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
                Err(serde::de::Error::custom(
                    "the tasks are a list, but each needs a key: write them as a table, such as {\"load\": {\"kind\": \"load\"}}",
                ))
            }
        }

        // Not deserialize_map: some formats would refuse a list with words of their own.
        from.deserialize_any(Tasks)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_reads_back_as_itself_with_its_defaults_left_out() {
        let written = json!({
            "name": "orders",
            "tasks": {
                "extract": { "kind": "sql", "timeout": "2m 30s" },
                "load": { "kind": "mail", "after": ["extract"], "rule": "none_failed", "when": "input.mail" },
            },
        });
        let read: Definition = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.tasks[0].1.timeout, Some(Duration::from_secs(150)));
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let read = |text: &str| serde_json::from_str::<Definition>(text).unwrap_err().to_string();
        let misspelt = read(r#"{"name": "x", "tasks": {"a": {"kind": "k", "afer": []}}}"#);
        assert!(misspelt.contains("unknown field `afer`"), "{misspelt}");
        let rule = read(r#"{"name": "x", "tasks": {"a": {"kind": "k", "rule": "sometimes"}}}"#);
        assert!(rule.contains("unknown variant `sometimes`"), "{rule}");
        let timeout = read(r#"{"name": "x", "tasks": {"a": {"kind": "k", "timeout": "soon"}}}"#);
        assert!(timeout.contains("expected number"), "{timeout}");
    }

    #[test]
    fn a_task_does_exactly_one_thing() {
        assert_eq!(Task::job("mail").work(), Some(Work::Job { kind: "mail" }));
        let each = Task::each("mail", "input.to");
        assert_eq!(each.work(), Some(Work::Each { kind: "mail", list: "input.to" }));
        assert_eq!(Task::bulk("push").work(), Some(Work::Bulk { name: "push" }));
        assert_eq!(Task::batch("etl").work(), Some(Work::Batch { dag: "etl" }));
        assert_eq!(Task::nothing().work(), None);
        assert_eq!(Task { dag: Some("etl".to_owned()), ..Task::job("mail") }.work(), None);
        assert_eq!(Task { each: Some("input".to_owned()), ..Task::bulk("push") }.work(), None);
    }
}
