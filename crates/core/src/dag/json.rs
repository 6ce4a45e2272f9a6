//! Conversion between JSON and CEL values.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cel::Value as Cel;
use cel::objects::{Key, Map, Opaque};
use serde_json::{Number, Value};

use crate::json::{digits, mark};

/// A whole number that is too large for CEL's integers. Expressions can compare it for equality and return it, but not calculate with it.
#[derive(Clone, PartialEq, Eq)]
struct LargeInteger(String);

/// As error messages show it.
impl fmt::Debug for LargeInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Opaque for LargeInteger {
    fn runtime_type_name(&self) -> &'static str {
        "integer beyond 64 bits"
    }
}

/// Converts JSON to a CEL value: whole numbers become integers, all other numbers floats.
pub(super) fn to_cel(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Cel::Int(int),
            (None, Some(uint)) => Cel::UInt(uint),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => {
            digits(text).map_or_else(|| Cel::String(Arc::new(text.clone())), number_to_cel)
        }
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => map(members.iter().map(|(name, value)| (name.as_str(), to_cel(value)))),
    }
}

/// Converts a number that is not exact as a double.
fn number_to_cel(digits: &str) -> Cel {
    if digits.contains(['.', 'e', 'E']) {
        Cel::Float(digits.parse().unwrap_or(f64::NAN))
    } else {
        Cel::Opaque(Arc::new(LargeInteger(digits.to_owned())))
    }
}

/// Creates a CEL map from names and values.
pub(super) fn map<'a>(members: impl Iterator<Item = (&'a str, Cel)>) -> Cel {
    let members = members.map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    Cel::Map(Map { map: Arc::new(members.collect::<HashMap<_, _>>()) })
}

/// Converts a CEL value to JSON. The error is the name of a value that JSON cannot represent.
pub(super) fn to_json(value: &Cel) -> Result<Value, &'static str> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(truth) => Value::Bool(*truth),
        Cel::Int(int) => Value::from(*int),
        Cel::UInt(uint) => Value::from(*uint),
        Cel::Float(float) => Value::Number(Number::from_f64(*float).ok_or("a number that is not finite")?),
        Cel::String(text) if digits(text).is_some() => return Err("a text with the character NUL"),
        Cel::String(text) => Value::String(text.as_ref().clone()),
        Cel::Opaque(opaque) => match opaque.downcast_ref::<LargeInteger>() {
            Some(LargeInteger(digits)) => Value::String(mark(digits)),
            None => return Err(name(value)),
        },
        Cel::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let member = |(key, value): (&Key, &Cel)| Ok((key.to_string(), to_json(value)?));
            let members =
                map.map.iter().map(member).collect::<Result<serde_json::Map<_, _>, &'static str>>()?;
            // Otherwise, one of their values would be lost, a different one each time.
            if members.len() < map.map.len() {
                return Err("a map with two keys that have the same name in JSON, such as 1 and \"1\"");
            }
            Value::Object(members)
        }
        other => return Err(name(other)),
    })
}

/// Returns the name of a value's type for messages.
pub(super) fn name(value: &Cel) -> &'static str {
    match value {
        Cel::Null => "null",
        Cel::Bool(_) => "a boolean",
        Cel::Int(_) | Cel::UInt(_) | Cel::Float(_) => "a number",
        Cel::String(_) => "a string",
        Cel::List(_) => "a list",
        Cel::Map(_) => "a map",
        Cel::Bytes(_) => "bytes",
        Cel::Opaque(opaque) if opaque.downcast_ref::<LargeInteger>().is_some() => "a number",
        _ => "a type, a function or another value that JSON cannot represent",
    }
}

/// The number of text bytes that count as one step.
const BYTES_A_STEP: usize = 64;
/// The number of additional steps for a map and for each of its entries, which take five to eight times as long to copy and to drop as the items of
/// a list.
const MAP_STEPS: u64 = 2;
const ENTRY_STEPS: u64 = 4;

/// Returns the approximate work to copy a value, or more than `max`. A value that occurs in a list several times is counted each time, as
/// it would be written in JSON, so that a value that is small in memory can have a huge weight.
pub(super) fn weight(value: &Cel, max: u64) -> u64 {
    let text = |bytes: usize| (bytes / BYTES_A_STEP) as u64;
    let mut sum = 1;
    let mut add_all = |values: &mut dyn Iterator<Item = &Cel>| {
        for value in values {
            if sum > max {
                return;
            }
            sum += weight(value, max - sum);
        }
    };
    match value {
        Cel::String(string) => sum += text(string.len()),
        Cel::Bytes(bytes) => sum += text(bytes.len()),
        Cel::List(items) => add_all(&mut items.iter()),
        Cel::Map(map) => {
            add_all(&mut map.map.values());
            sum += MAP_STEPS + ENTRY_STEPS * map.map.len() as u64;
            let names =
                map.map.keys().map(|key| if let Key::String(name) = key { text(name.len()) } else { 0 });
            sum = sum.saturating_add(names.sum());
        }
        _ => {}
    }
    sum
}

/// Returns the weight of a JSON value: 1 for each value and 1 for each 64 bytes of text, and more for objects; or more than `max`.
pub(crate) fn weight_of_json(json: &Value, max: u64) -> u64 {
    let add = |sum: u64, value| if sum > max { sum } else { sum + weight_of_json(value, max - sum) };
    match json {
        Value::String(text) => 1 + (text.len() / BYTES_A_STEP) as u64,
        Value::Array(items) => items.iter().fold(1, add),
        Value::Object(members) => {
            members.values().fold(1 + MAP_STEPS + ENTRY_STEPS * members.len() as u64, add)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_goes_through_cel_unchanged() {
        let value = json!({"a": [1, -2, 2.5, u64::MAX, true, null, "é"], "b": {"c": {}}});
        assert_eq!(to_json(&to_cel(&value)), Ok(value));
    }

    #[test]
    fn what_json_does_not_have_is_named() {
        assert_eq!(to_json(&Cel::Float(f64::NAN)), Err("a number that is not finite"));
        assert_eq!(to_json(&Cel::List(Arc::new(vec![Cel::Bytes(Arc::new(vec![1]))]))), Err("bytes"));
        let keys = [Key::Int(1), Key::String(Arc::new("1".to_owned()))];
        let same = keys.into_iter().map(|key| (key, Cel::Null)).collect::<HashMap<_, _>>();
        assert!(to_json(&Cel::Map(Map { map: Arc::new(same) })).is_err_and(|why| why.contains("two keys")));
    }
}
