//! Comparison of JSON texts by value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns whether two JSON texts have the same value. Whitespace, the order of keys and the notation of numbers are
/// ignored. Numbers are compared digit by digit, whatever their length.
#[must_use]
pub fn is_same_json(one: &str, other: &str) -> bool {
    one == other || matches!((Json::read(one), Json::read(other)), (Some(one), Some(other)) if one == other)
}

#[derive(PartialEq)]
enum Json<'a> {
    /// `true`, `false` or `null`.
    Word(&'a str),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(BTreeMap<Cow<'a, str>, Self>),
}

/// ± 0.`digits` × 10^`exponent`, without leading and trailing zeros in `digits`; zero has no digits.
#[derive(PartialEq)]
pub(super) struct Number {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl<'a> Json<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let text = text.trim_ascii();
        Some(match text.bytes().next()? {
            b'{' => {
                let members: BTreeMap<Key<'a>, &'a RawValue> = serde_json::from_str(text).ok()?;
                let member =
                    |(Key(key), value): (Key<'a>, &'a RawValue)| Some((key, Self::read(value.get())?));
                Self::Object(members.into_iter().map(member).collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&'a RawValue> = serde_json::from_str(text).ok()?;
                Self::List(items.into_iter().map(|item| Self::read(item.get())).collect::<Option<_>>()?)
            }
            b'"' => Self::Text(serde_json::from_str::<Key<'a>>(text).ok()?.0),
            b'-' | b'0'..=b'9' => Self::Number(Number::read(text)?),
            _ => Self::Word(text),
        })
    }
}

/// A text that is copied only if it contains escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Number {
    pub(super) fn read(text: &str) -> Option<Self> {
        let negative = text.starts_with('-');
        let (mantissa, exponent) = text
            .trim_start_matches('-')
            .split_once(['e', 'E'])
            .unwrap_or((text.trim_start_matches('-'), "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let leading = i64::try_from(digits.len() - significant.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(i64::try_from(whole.len()).ok()?)?;
        let digits = significant.trim_end_matches('0').to_owned();
        Some(match digits.is_empty() {
            true => Self { negative: false, digits, exponent: 0 },
            false => Self { negative, digits, exponent: exponent.checked_sub(leading)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_otherwise_is_the_same() {
        for (one, other) in [
            (r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1.0}"#),
            ("1.50", "15e-1"),
            ("-0", "0.0"),
            ("100", "1E+2"),
            ("0.001", "1e-3"),
            (r#""\u00e9""#, r#""é""#),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#),
        ] {
            assert!(is_same_json(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_differs_differs() {
        for (one, other) in [
            ("1", "-1"),
            ("1", "10"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("true", "false"),
            (r#""1""#, "1"),
            ("[1, 2]", "[2, 1]"),
            (r#"{"a": null}"#, "{}"),
        ] {
            assert!(!is_same_json(one, other), "{one} {other}");
        }
    }
}
