//! Parameters of a run, which its SQL refers to by name. Numbers keep all their digits, since databases store more digits than a float.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::json::without_blanks;

/// The members of a JSON object, as written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Box<RawValue>>);

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A number, with all its digits.
    Number(&'a str),
    /// A text.
    Text(String),
    /// An array or an object, as JSON text without whitespace.
    Json(String),
}

/// Returns what a person wrote as the value of a parameter: JSON where it can be parsed, otherwise a text.
#[must_use]
pub fn json_or_text(written: &str) -> Box<RawValue> {
    let json = RawValue::from_string(written.trim().to_owned());
    json.or_else(|_| to_raw_value(written)).unwrap_or_default()
}

impl Parameters {
    /// Parses the payload of a run; `None` when it is not an object.
    #[must_use]
    pub fn read(payload: &str) -> Option<Self> {
        serde_json::from_str(payload).ok()
    }

    /// Returns a parameter by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Parameter<'_>> {
        self.0.get(name).map(|value| Parameter::of(value.get()))
    }

    /// Adds a parameter; returns whether the name is new.
    pub fn add(&mut self, name: String, value: Box<RawValue>) -> bool {
        self.0.insert(name, value).is_none()
    }
}

impl<'a> Parameter<'a> {
    fn of(json: &'a str) -> Self {
        match json.bytes().next() {
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Truth(json == "true"),
            Some(b'"') => Self::Text(serde_json::from_str(json).unwrap_or_default()),
            Some(b'[' | b'{') => Self::Json(without_blanks(json)),
            _ => Self::Number(json),
        }
    }

    /// Returns it as text, for a database that knows the parameter's type; `None` for null.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Truth(truth) => Some(truth.to_string()),
            Self::Text(text) | Self::Json(text) => Some(text),
            Self::Number(text) => Some(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn parameters_keep_what_was_written() {
        let read = Parameters::read(
            r#"{"n": 100000000000000000001, "x": 0.10, "t": "a\"b", "no": null, "yes": true, "l": [1.0, "a \" b"]}"#,
        );
        let parameters = read.unwrap();
        let text = |name| parameters.get(name).map(Parameter::into_text);
        assert_eq!(text("n"), Some(Some("100000000000000000001".to_owned())));
        assert_eq!(text("x"), Some(Some("0.10".to_owned())));
        assert_eq!(text("t"), Some(Some("a\"b".to_owned())));
        assert_eq!(
            (text("no"), text("yes"), text("none")),
            (Some(None), Some(Some("true".to_owned())), None)
        );
        assert_eq!(parameters.get("l"), Some(Parameter::Json(r#"[1.0,"a \" b"]"#.to_owned())));
        assert!(Parameters::read("[1]").is_none() && Parameters::read("7").is_none());
    }
}
