//! JSON values within larger documents, such as the payloads of a DAG.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::RESERVED_MEMBERS;

/// A value whose objects are read as objects. [`Value`] itself reads an object with a reserved member as another value, past the checks of
/// the document.
struct Plain(Value);

/// Reads a field that is a value.
///
/// # Errors
/// Those of the format, and a reserved member.
pub fn plain_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Plain::deserialize(deserializer).map(|plain| plain.0)
}

/// Reads a field that is a value, or absent.
///
/// # Errors
/// Those of [`plain_value`].
pub fn plain_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Option::<Plain>::deserialize(deserializer)?.map(|plain| plain.0))
}

/// Reads a field that is an object.
///
/// # Errors
/// Those of [`plain_value`], and for another value.
pub fn plain_members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match plain_value(deserializer)? {
        Value::Object(members) => Ok(members),
        other => Err(D::Error::custom(format!("invalid type: {other}, expected a map"))),
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Self)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        plain_value(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Plain(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(RESERVED_MEMBERS) {
                return Err(A::Error::custom(format!(
                    "names that begin with \"{RESERVED_MEMBERS}\" are reserved; rename the member"
                )));
            }
            let Plain(value) = members.next_value()?;
            // The keys of other formats can have the same name in JSON, such as 1 and "1" of YAML.
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("the member {name:?} is given twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_they_are_written_and_reserved_members_are_refused() {
        let read = |text: &str| plain_value(&mut serde_json::Deserializer::from_str(text));
        let text = r#"{"a": [1, -2, 0.5, 18446744073709551615, null, true, "x"], "b": {"c": {}}}"#;
        assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        for bad in [
            r#"{"$serde_json::private::RawValue": "1"}"#,
            r#"[{"a": {"\u0024serde_json::private::Number": "1"}}]"#,
        ] {
            assert!(read(bad).unwrap_err().to_string().contains("reserved"), "{bad}");
        }
        let twice = r#"[{"a": 1, "b": {}, "a": 2}]"#;
        assert!(read(twice).unwrap_err().to_string().contains("the member \"a\" is given twice"));
        let object = json!({ "a": 1 });
        assert_eq!(Value::Object(plain_members(&object).unwrap()), object);
        assert!(plain_members(&json!([1])).is_err());
        assert_eq!(plain_option(&Value::Null).unwrap(), None);
    }
}
