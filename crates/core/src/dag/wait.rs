//! Waits: tasks that wait for a signal or for a time, as written in definitions.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::schema::InputSchema;
use super::span;
use super::state::TaskState;
use crate::job::{NAME_BYTES_MAX, StartAt, check_name, check_start};
use crate::json::{check_payload, large_number, plain_option};
use crate::named::named_enum;

/// The maximum number of choices of a wait.
pub const CHOICES_MAX: usize = 20;
/// The maximum size of the schema of a signal, in bytes of JSON text.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// The maximum time of a wait.
pub const WAIT_MAX: Duration = Duration::from_hours(24 * 365 * 10);
/// The member of a signal's payload that has the choice.
pub const CHOICE: &str = "choice";

named_enum! {
    /// What a wait for a signal does after its timeout.
    OnTimeout {
        /// The task fails; an operator can rerun or mark it.
        Fail = "fail",
        /// The task is skipped.
        Skip = "skip",
        /// The task succeeds without an output.
        Succeed = "succeed",
    }
}

impl OnTimeout {
    /// Returns the state of the task after the timeout.
    #[must_use]
    pub const fn state(self) -> TaskState {
        match self {
            Self::Fail => TaskState::Failed,
            Self::Skip => TaskState::Skipped,
            Self::Succeed => TaskState::Succeeded,
        }
    }

    /// Returns the value whose state this is.
    #[must_use]
    pub fn of_state(state: TaskState) -> Self {
        Self::ALL.iter().copied().find(|its| its.state() == state).unwrap_or(Self::Fail)
    }
}

/// What a task waits for. It has exactly one of `signal`, `for` and `until`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DagWait))]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The name of the signal. The payload of the signal is the output of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// How long it waits for the signal, such as `3d`. Without it, there is no limit.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub timeout: Option<Duration>,
    /// What follows when no signal arrived in that time: `fail` (the default), `skip` or `succeed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// The values that the member `choice` of the payload can have, such as `["approve", "reject"]`. The console has a button for each.
    #[serde(default, deserialize_with = "choices", skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// A JSON Schema for the payload of the signal. The console has a field for each of its properties.
    #[serde(default, deserialize_with = "plain_option", skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A time to wait, such as `2h`.
    #[serde(default, rename = "for", with = "span", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub duration: Option<Duration>,
    /// The time until which it waits (RFC 3339); it can contain `${ … }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Wait {
    /// Creates a wait for a signal, without a timeout.
    #[must_use]
    pub fn signal(name: impl Into<String>) -> Self {
        Self { signal: Some(name.into()), ..Self::default() }
    }

    /// Creates a wait for a time.
    #[must_use]
    pub fn time(duration: Duration) -> Self {
        Self { duration: Some(duration), ..Self::default() }
    }

    /// Creates a wait until a time (RFC 3339), which can be a template.
    #[must_use]
    pub fn until(time: impl Into<String>) -> Self {
        Self { until: Some(time.into()), ..Self::default() }
    }

    /// Sets how long it waits for the signal, and what follows.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration, on_timeout: OnTimeout) -> Self {
        (self.timeout, self.on_timeout) = (Some(timeout), Some(on_timeout));
        self
    }

    /// Sets the choices.
    #[must_use]
    pub fn choices<C: Into<String>>(mut self, choices: impl IntoIterator<Item = C>) -> Self {
        self.choices.extend(choices.into_iter().map(Into::into));
        self
    }

    /// Sets the JSON Schema of the payload.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Returns its faults.
    pub(super) fn faults(&self) -> Vec<InvalidWait> {
        let is_signal = self.signal.is_some();
        let kinds = [is_signal, self.duration.is_some(), self.until.is_some()];
        let only_signals = [
            ("timeout", self.timeout.is_some()),
            ("on_timeout", self.on_timeout.is_some()),
            ("choices", !self.choices.is_empty()),
            ("schema", self.schema.is_some()),
        ];
        let mut faults = Vec::new();
        if kinds.iter().filter(|is| **is).count() != 1 {
            faults.push(InvalidWait::Kind);
        }
        for (field, _) in only_signals.iter().filter(|(_, is)| *is && !is_signal) {
            faults.push(InvalidWait::OnlyOfSignals { field });
        }
        if self.on_timeout.is_some() && self.timeout.is_none() {
            faults.push(InvalidWait::NoTimeout);
        }
        for (field, time) in [("timeout", self.timeout), ("for", self.duration)] {
            if time.is_some_and(|time| time.is_zero() || time > WAIT_MAX) {
                faults.push(InvalidWait::Time { field });
            }
        }
        // A text with expressions is known only when the task begins to wait.
        let fixed = self.until.iter().filter(|until| !until.contains("${"));
        faults.extend(fixed.filter_map(|until| time(until).err()).map(|why| InvalidWait::Until { why }));
        faults.extend(self.name_faults());
        faults.extend(self.schema.as_ref().and_then(schema_fault));
        faults
    }

    fn name_faults(&self) -> Vec<InvalidWait> {
        let name = self.signal.iter().map(|name| ("signal", name));
        let names = name.chain(self.choices.iter().map(|choice| ("choice", choice)));
        let invalid = names.filter_map(|(what, name)| check_name(what, name, NAME_BYTES_MAX).err());
        let mut faults: Vec<_> = invalid.map(|why| InvalidWait::Name { why: why.to_string() }).collect();
        if self.choices.len() > CHOICES_MAX {
            faults.push(InvalidWait::TooManyChoices);
        }
        let repeated = |(at, choice)| self.choices[..at].contains(choice);
        faults.extend(
            self.choices.iter().enumerate().find(|its| repeated(*its)).map(|(_, choice)| InvalidWait::Name {
                why: format!("the choice {choice:?} is given twice"),
            }),
        );
        faults
    }

    /// Checks the payload of a signal against the choices and the schema. This can take a second, like the check of an input.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn check_payload(&self, payload: &Value) -> Result<(), String> {
        if !self.choices.is_empty() {
            let choice = payload.get(CHOICE).and_then(Value::as_str);
            if !choice.is_some_and(|choice| self.choices.iter().any(|its| its == choice)) {
                let choices = self.choices.join(", ");
                return Err(format!("its member {CHOICE:?} must be one of: {choices}"));
            }
        }
        let Some(schema) = &self.schema else { return Ok(()) };
        let schema = InputSchema::compile(schema).map_err(|invalid| invalid.to_string())?;
        let unfit = |why: String| format!("it does not match the schema of the wait: {why}");
        schema.check(payload).map_err(|invalid| unfit(invalid.why))
    }
}

/// Reads the time until which a task waits.
///
/// # Errors
/// The reason, in words.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let time: Timestamp = text.parse().map_err(|e| format!("{text:?} is not a time (RFC 3339): {e}"))?;
    check_start(StartAt::At(time)).map_err(|e| e.to_string())?;
    Ok(time)
}

/// Reads choices. An empty list would be a wait that no signal can end, or one that any can: it is refused.
fn choices<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let choices = Vec::deserialize(from)?;
    if choices.is_empty() {
        return Err(D::Error::custom(
            "choices must not be empty; without choices, any payload ends the wait",
        ));
    }
    Ok(choices)
}

fn schema_fault(schema: &Value) -> Option<InvalidWait> {
    let invalid = |why: String| Some(InvalidWait::Schema { why });
    if let Some(number) = large_number(schema) {
        return invalid(format!("it has the number {number}, whose digits a definition cannot keep"));
    }
    if let Err(refused) = check_payload(&schema.to_string(), SCHEMA_BYTES_MAX) {
        return invalid(refused.to_string().replacen("the payload", "it", 1));
    }
    InputSchema::compile(schema).err().and_then(|why| invalid(why.why))
}

/// A fault of a wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWait {
    /// It does not have exactly one of the three kinds.
    #[error("a wait has exactly one of signal, for and until")]
    Kind,
    /// A field that only waits for signals have.
    #[error("{field} is only for a wait with a signal")]
    OnlyOfSignals {
        /// The field.
        field: &'static str,
    },
    /// There is `on_timeout` without `timeout`.
    #[error("on_timeout needs a timeout")]
    NoTimeout,
    /// A time is zero or too long.
    #[error("{field} must be from 1ms to 10 years")]
    Time {
        /// The field.
        field: &'static str,
    },
    /// The name of a signal or a choice is invalid.
    #[error("{why}")]
    Name {
        /// The reason.
        why: String,
    },
    /// There are too many choices.
    #[error("at most {CHOICES_MAX} choices are allowed")]
    TooManyChoices,
    /// The schema is invalid.
    #[error("the schema of the signal is invalid: {why}")]
    Schema {
        /// The reason and the location.
        why: String,
    },
    /// The task has a setting of jobs.
    #[error("a task with wait has no job, so it cannot have {field}; remove it")]
    OfJob {
        /// The field.
        field: &'static str,
    },
    /// Another task waits for the same signal.
    #[error("the task {other:?} waits for the same signal; give each wait its own signal")]
    SameSignal {
        /// The key of the other task.
        other: String,
    },
    /// An expression does not compile.
    #[error("until: {why}")]
    Until {
        /// The reason.
        why: String,
    },
}

/// What a task begins to wait for: a wait whose expressions are evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The name of the signal; `None`: it waits for a time only.
    pub signal: Option<String>,
    /// How long it waits at most, from now.
    pub timeout: Option<Duration>,
    /// The time until which it waits, if it is fixed.
    pub until: Option<Timestamp>,
    /// What follows after that time.
    pub on_timeout: OnTimeout,
}

impl Awaited {
    /// Returns what a task with this wait waits for; `until`: the rendered time.
    pub(crate) fn of(wait: &Wait, until: Option<Timestamp>) -> Self {
        let on_timeout = match &wait.signal {
            Some(_) => wait.on_timeout.unwrap_or(OnTimeout::Fail),
            None => OnTimeout::Succeed,
        };
        Self { signal: wait.signal.clone(), timeout: wait.timeout.or(wait.duration), until, on_timeout }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.signal {
            Some(signal) => write!(f, "waits for the signal {signal}"),
            None => f.write_str("waits for a time"),
        }
    }
}

#[cfg(test)]
mod tests;
