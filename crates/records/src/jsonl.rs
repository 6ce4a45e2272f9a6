//! A line of JSON as a job's payload and key.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::bad_record::Flaw;

/// Checks that the line is one JSON value, and reads the key from its member `key_member`.
pub fn read<'a>(line: &'a [u8], key_member: Option<&str>) -> Result<(&'a str, Option<String>), Flaw> {
    let text = utf8(line)?;
    let value: &RawValue = serde_json::from_str(text).map_err(|e| not_json(&e))?;
    let key = key_member.map(|member| key(text, member)).transpose()?;
    Ok((value.get(), key))
}

/// Decodes the bytes as UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str, Flaw> {
    std::str::from_utf8(bytes).map_err(|e| Flaw::new(e.valid_up_to(), "the text is not UTF-8"))
}

fn not_json(error: &serde_json::Error) -> Flaw {
    let words = error.to_string();
    // The parser counts from the start of the line; the position is reported once, relative to the file.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = words.strip_suffix(&place).unwrap_or(&words);
    Flaw::new(error.column().saturating_sub(1), format!("this is not JSON: {why}"))
}

fn key(text: &str, member: &str) -> Result<String, Flaw> {
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text)
        .map_err(|_| Flaw::new(0, format!("this is not a JSON object, so it has no key {member:?}")))?;
    let Some(value) = members.get(member) else {
        return Err(Flaw::new(0, format!("the key {member:?} is missing")));
    };
    let json = value.get();
    let flaw = |why: &str| {
        Flaw::new(json.as_ptr().addr() - text.as_ptr().addr(), format!("the key {member:?} {why}"))
    };
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(key) if key.is_empty() => Err(flaw("is empty")),
            Ok(key) => Ok(key),
            Err(e) => Err(flaw(&format!("cannot be read: {e}"))),
        },
        Some(b'-' | b'0'..=b'9') => Ok(json.to_owned()),
        _ => Err(flaw("is neither a string nor a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(line: &str) -> Result<Option<String>, (usize, String)> {
        match read(line.as_bytes(), Some("id")) {
            Ok((_, key)) => Ok(key),
            Err(flaw) => Err((flaw.offset, flaw.why)),
        }
    }

    #[test]
    fn keys_are_strings_or_numbers() {
        assert_eq!(key_of(r#"{"id":"a\u00e9"}"#), Ok(Some("aé".to_owned())));
        assert_eq!(key_of(r#"{"id": 42}"#), Ok(Some("42".to_owned())));
        assert_eq!(key_of(r#"{"id": ""}"#).unwrap_err().0, 7);
        assert_eq!(key_of(r#"{"a":1,"id":null}"#).unwrap_err().0, 12);
        assert!(key_of(r#"{"x":1}"#).unwrap_err().1.contains("missing"));
        assert!(key_of("[1]").unwrap_err().1.contains("not a JSON object"));
    }

    #[test]
    fn the_flaw_of_a_line_is_where_the_parser_stopped() {
        let flaw = read(br#"{"a": }"#, None).unwrap_err();
        assert_eq!(flaw, Flaw::new(6, "this is not JSON: expected value"));
        assert_eq!(read(b"\"a\xff\"", None).unwrap_err().offset, 2);
        assert!(read(b"{} {}", None).is_err());
    }
}
