//! JSON values whose numbers keep all their digits.

use std::fmt;

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::bytes;
use super::same::Number;

/// Precedes the digits of a number that is kept as text. No text from a caller contains it: NUL is refused everywhere.
const MARK: char = '\0';
/// Numbers with at most this many digits and no exponent are the same as a double and in decimal (IEEE 754).
const DIGITS_OF_DOUBLE: usize = 15;

/// A JSON value. A number that neither a 64-bit integer nor a double represents exactly keeps its digits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exact(Value);

impl Exact {
    /// Parses JSON text.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        match marked(text) {
            // A text that is not JSON must fail with its own error.
            Some(marked) => serde_json::from_str::<serde::de::IgnoredAny>(text)
                .and_then(|_| serde_json::from_str(&marked))
                .map(Self),
            None => serde_json::from_str(text).map(Self),
        }
    }

    /// Returns the value after a change. Numbers that are kept as text are texts for `change`.
    #[must_use]
    pub(crate) fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.0);
        self
    }

    /// Returns an array of these values.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(Value::Array(items.into_iter().map(|item| item.0).collect()))
    }

    /// Returns an object with these members.
    pub fn object(members: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self(Value::Object(members.into_iter().map(|(name, value)| (name, value.0)).collect::<Map<_, _>>()))
    }

    /// Returns the items of an array; otherwise the value.
    ///
    /// # Errors
    /// The value, if it is not an array.
    pub fn into_items(self) -> Result<Vec<Self>, Self> {
        match self.0 {
            Value::Array(items) => Ok(items.into_iter().map(Self).collect()),
            other => Err(Self(other)),
        }
    }

    /// Returns the value with each number that is not exact as the nearest double.
    #[must_use]
    pub fn rounded(&self) -> Value {
        fn round(value: &Value) -> Value {
            match value {
                Value::String(text) => digits(text)
                    .map_or_else(|| value.clone(), |digits| serde_json::from_str(digits).unwrap_or_default()),
                Value::Array(items) => Value::Array(items.iter().map(round).collect()),
                Value::Object(members) => {
                    Value::Object(members.iter().map(|(name, value)| (name.clone(), round(value))).collect())
                }
                other => other.clone(),
            }
        }
        round(&self.0)
    }

    /// Returns the value, in which [`digits`] finds the numbers that are kept as text.
    pub(crate) const fn marked(&self) -> &Value {
        &self.0
    }

    /// Returns the value, in which [`digits`] finds the numbers that are kept as text.
    pub(crate) fn into_marked(self) -> Value {
        self.0
    }

    /// Returns the text, if the value is a text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        self.0.as_str().filter(|text| digits(text).is_none())
    }

    /// Creates the value from one in which such numbers are kept as text.
    pub(crate) const fn of_marked(value: Value) -> Self {
        Self(value)
    }
}

/// Its numbers are exact already.
impl From<Value> for Exact {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written(&self.0).serialize(serializer)
    }
}

/// A value whose numbers are written with their digits.
struct Written<'v>(&'v Value);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) => match digits(text) {
                Some(digits) => {
                    RawValue::from_string(digits.to_owned()).map_err(S::Error::custom)?.serialize(serializer)
                }
                None => serializer.serialize_str(text),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Written)),
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, &Written(value)))?;
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Returns a number that parsing may have rounded to a multiple of more than one: a double beyond the integers of 64 bits.
pub(crate) fn large_number(value: &Value) -> Option<String> {
    const BEYOND_INTEGERS: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Value::Number(number) => {
            let is_large = number.is_f64() && number.as_f64().is_some_and(|it| it.abs() >= BEYOND_INTEGERS);
            is_large.then(|| number.to_string())
        }
        Value::Array(items) => items.iter().find_map(large_number),
        Value::Object(members) => members.values().find_map(large_number),
        _ => None,
    }
}

/// Returns the digits of a number that is kept as text. Text that another program stored may begin with NUL, too, and is not a number.
pub(crate) fn digits(text: &str) -> Option<&str> {
    let is_number = |digits: &&str| {
        digits.trim_ascii().len() == digits.len()
            && serde_json::from_str::<serde_json::Number>(digits).is_ok()
    };
    text.strip_prefix(MARK).filter(is_number)
}

/// Returns the text that keeps the digits of a number.
pub(crate) fn mark(digits: &str) -> String {
    format!("{MARK}{digits}")
}

/// Returns the text with each number that is not exact as a marked text; `None` if there is no such number.
fn marked(json: &str) -> Option<String> {
    let (mut marked, mut copied) = (String::new(), 0);
    for (from, to) in numbers(json) {
        let number = &json[from..to];
        if !is_exact(number) {
            marked.push_str(&json[copied..from]);
            marked.push_str("\"\\u0000");
            marked.push_str(number);
            marked.push('"');
            copied = to;
        }
    }
    (copied > 0).then(|| marked + &json[copied..])
}

/// Returns where the numbers of JSON text are that may not be exact: those with many digits or an exponent.
pub(super) fn numbers(json: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut bytes = bytes(json).chain([(json.len(), b' ', false)]);
    std::iter::from_fn(move || {
        let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let mut from = None;
        let mut has_exponent = false;
        for (at, byte, in_text) in bytes.by_ref() {
            match from {
                Some(_) if !in_text && is_part(byte) => has_exponent |= matches!(byte, b'e' | b'E'),
                Some(start) => {
                    if has_exponent || at - start > DIGITS_OF_DOUBLE {
                        return Some((start, at));
                    }
                    from = None;
                    has_exponent = false;
                }
                None if !in_text && (byte == b'-' || byte.is_ascii_digit()) => from = Some(at),
                None => {}
            }
        }
        None
    })
}

/// Returns whether serde_json represents a number exactly. Text that is not a number counts as exact.
fn is_exact(number: &str) -> bool {
    let parsed = serde_json::from_str::<serde_json::Number>(number);
    parsed.map_or(true, |parsed| Number::read(number) == Number::read(&parsed.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for text in [
            "100000000000000000001",
            "-18446744073709551616",
            "0.12345678901234567890",
            r#"{"a":[1,2.5,100000000000000000001],"b":{"c":12345678901234567.89}}"#,
            r#"["1e400","100000000000000000001",18446744073709551615,-9223372036854775808]"#,
            r#"{"\"1":3.14159265358979323846,"100000000000000000001":null}"#,
            "[1000000000000000000010e-1,123456789012345678901234567890E+3]",
            r#"["a\\",0.1000000000000000055511151231257827]"#,
        ] {
            assert_eq!(Exact::read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn numbers_that_a_double_represents_stay_numbers() {
        let values = json!([0, -1, 2.5, 1e30, 123456789012345680.0, u64::MAX, 1e-7, 0.1, 5e-324]);
        assert_eq!(Exact::read(&values.to_string()).unwrap(), Exact(values));
        assert_eq!(Exact::read("1.50e1").unwrap(), Exact(json!(15.0)));
    }

    #[test]
    fn a_text_that_begins_with_nul_and_is_no_number_stays_a_text() {
        let text = r#"["\u0000","\u0000x","\u00001 "]"#;
        assert_eq!(Exact::read(text).unwrap().to_string(), text);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "[1", "1e400", "100000000000000000001x", "[1000000000000000000001.]", "--1e5"] {
            assert!(Exact::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_rounded_only_when_that_is_asked_for() {
        let value = Exact::read(r#"{"a":[100000000000000000001],"b":"x"}"#).unwrap();
        assert_eq!(value.rounded(), json!({"a": [1e20], "b": "x"}));
    }
}
