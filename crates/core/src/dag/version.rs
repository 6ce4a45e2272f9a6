//! Versions of DAGs: hashes of their content, independent of formatting.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::definition::{Definition, Task};

/// A prefix of every hash, so that a different canonical form leads to different versions.
const FORM: &str = "milepost dag 1\n";

/// The content of a DAG: the SHA-256 of its canonical form, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
#[serde(try_from = "String", into = "String")]
pub struct Version([u8; 32]);

impl Version {
    /// Returns the version of a [canonical] text.
    #[must_use]
    pub fn of(canonical: &str) -> Self {
        Self(Sha256::new().chain_update(FORM).chain_update(canonical).finalize().into())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// A text that is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a version of a DAG must have 64 hexadecimal digits")]
pub struct InvalidVersion;

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(InvalidVersion);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or(InvalidVersion)?;
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// Returns the canonical form of a definition: JSON without whitespace, with sorted members and predecessors and
/// without default values. It can be parsed as a definition with the same content, and is the form that stores keep.
///
/// # Errors
/// When the definition cannot be serialized, which does not happen for definitions of this crate.
pub fn canonical(definition: &Definition) -> Result<String, serde_json::Error> {
    let mut tasks: Vec<&(String, Task)> = definition.tasks.iter().collect();
    tasks.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = String::from("{");
    if let Some(description) = &definition.description {
        write(&mut text, "description", description)?;
        text.push(',');
    }
    if let Some(schema) = &definition.input_schema {
        write(&mut text, "input_schema", schema)?;
        text.push(',');
    }
    write(&mut text, "name", &definition.name)?;
    text.push_str(",\"tasks\":{");
    // One by one: parsed values of all tasks together would take many times the memory of the text.
    for (at, (key, task)) in tasks.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        let mut task = task.clone();
        task.after.sort();
        write(&mut text, key, &task)?;
    }
    text.push_str("}}");
    Ok(text)
}

/// Appends a member whose value is written with sorted members.
fn write(text: &mut String, name: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
    let mut value = serde_json::to_value(value)?;
    // Maps of serde_json are sorted, unless a crate in the build enables insertion order.
    value.sort_all_objects();
    text.push_str(&serde_json::to_string(name)?);
    text.push(':');
    text.push_str(&serde_json::to_string(&value)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Generates definitions of up to twelve tasks, each after some of the tasks before it, and the order in which to write them.
    fn definitions() -> impl Strategy<Value = (Value, Vec<(String, Value)>)> {
        let task = (0_u16.., 1_u8..=4, proptest::bool::ANY);
        let tasks = proptest::collection::vec(task, 1..12).prop_map(|tasks| {
            let task = |(at, &(after, priority, when)): (usize, &(u16, u8, bool))| {
                let after: Vec<_> =
                    (0..at).filter(|bit| after >> bit & 1 == 1).map(|at| format!("t{at}")).collect();
                let when = if when { json!("input.x > 1") } else { Value::Null };
                let payload = json!({"b": 1, "a": {"d": after, "c": "${input}"}});
                let task = json!({"kind": "k", "priority": priority, "after": after, "when": when, "payload": payload});
                (format!("t{at}"), task)
            };
            tasks.iter().enumerate().map(task).collect::<Vec<_>>()
        });
        tasks.prop_flat_map(|tasks| {
            let plain = json!({"name": "d", "tasks": Value::Object(tasks.iter().cloned().collect())});
            (Just(plain), Just(tasks).prop_shuffle())
        })
    }

    #[test]
    fn the_canonical_form_is_the_definition_with_all_members_in_order() {
        let written = json!({"tasks": {"b": {"kind": "k", "after": ["c", "a"]}, "a": {"payload": {"z": 1, "y": [2]}, "kind": "\"k"}, "c": {"dag": "d"}},
            "name": "n", "input_schema": {"type": "object", "a": 1}, "description": "d"});
        let definition: Definition = serde_json::from_value(written).unwrap();
        let mut sorted = definition.clone();
        sorted.tasks.sort_by(|(a, _), (b, _)| a.cmp(b));
        sorted.tasks.iter_mut().for_each(|(_, task)| task.after.sort());
        let mut whole = serde_json::to_value(&sorted).unwrap();
        whole.sort_all_objects();
        assert_eq!(canonical(&definition).unwrap(), whole.to_string());
    }

    fn version(definition: &Definition) -> (Version, String) {
        let canonical = canonical(definition).unwrap();
        (Version::of(&canonical), canonical)
    }

    proptest! {
        #[test]
        fn the_same_content_is_the_same_version_however_it_is_written((plain, shuffled) in definitions()) {
            let read: Definition = serde_json::from_value(plain).unwrap();
            let mut other = Definition::new("d");
            for (key, value) in shuffled {
                let text = serde_json::to_string_pretty(&value).unwrap();
                let mut task: super::super::definition::Task = serde_json::from_str(&text).unwrap();
                task.after.reverse();
                other = other.task(key, task);
            }
            prop_assert_eq!(version(&read), version(&other));
            let again: Definition = serde_json::from_str(&version(&read).1).unwrap();
            prop_assert_eq!(version(&again), version(&read));
        }

        #[test]
        fn other_content_is_another_version((plain, _) in definitions(), at in 0_usize..12, change in 0..5) {
            let read: Definition = serde_json::from_value(plain).unwrap();
            let mut other = read.clone();
            let at = at % other.tasks.len();
            let task = &mut other.tasks[at].1;
            match change {
                0 => task.kind = Some("other".to_owned()),
                1 => task.max_attempts += 1,
                2 => task.after.push("more".to_owned()),
                3 => task.payload = json!({"other": 1}),
                _ => other.name = "e".to_owned(),
            }
            prop_assert_ne!(version(&read).0, version(&other).0);
        }
    }

    #[test]
    fn a_version_is_written_as_hexadecimal_digits_and_is_the_same_for_ever() {
        let definition = Definition::new("d").task("a", super::super::definition::Task::job("k"));
        let (version, canonical) = version(&definition);
        assert_eq!(canonical, r#"{"name":"d","tasks":{"a":{"kind":"k"}}}"#);
        assert_eq!(version.to_string(), "1c1774e972096948da935515c94d16493f9bb3b071c4143f5de1af132aa3c055");
        assert_eq!(version.to_string().parse(), Ok(version));
        assert_eq!("a".repeat(63).parse::<Version>(), Err(InvalidVersion));
        assert_eq!("é".repeat(32).parse::<Version>(), Err(InvalidVersion));
    }
}
