//! Output of external programs and servers, as a job's result.

use milepost::{JobError, Outcome};
use milepost_core::finish::result_too_large;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::secrets::Secrets;
use milepost_http::Capped;
use serde_json::value::RawValue;

/// The most bytes kept of a possible result: a response body, or a line of a program's output.
pub(crate) const RESULT_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// The most bytes of a text that is not JSON.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Converts output to an outcome: JSON unchanged, other text as a JSON string, cut at 64 KiB, empty output without a result. Secrets are
/// removed.
///
/// # Errors
/// JSON that is too large to be read completely. A part of it would be of no use to its readers.
pub(crate) fn outcome(said: &Capped, secrets: &Secrets) -> Result<Outcome, JobError> {
    let text = secrets.hide(said.text());
    if said.cut && is_cut_json(&text) {
        let too_large = result_too_large("a result", RESULT_BYTES_MAX);
        return Err(JobError::fatal(too_large.code, too_large.message));
    }
    Ok(if text.is_empty() {
        Outcome::Done
    } else if !said.cut && is_json(&text) {
        Outcome::Result(text)
    } else {
        Outcome::Result(serde_json::Value::String(shortened(text).replace('\0', "\u{fffd}")).to_string())
    })
}

/// Returns whether a text that was cut, and so ends with an ellipsis, is the beginning of a JSON value.
fn is_cut_json(text: &str) -> bool {
    let text = text.trim_end_matches('…');
    let value = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().next();
    value.is_some_and(|value| value.is_err_and(|error| error.is_eof()))
}

/// Cuts a text at [`TEXT_BYTES_MAX`].
fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

/// Returns whether the text is JSON by its syntax. If no store can keep it, such as a list with a number out of range, the run fails, like
/// every run with such a result: a string in its place would be another value. Only digits that no number can hold are text.
fn is_json(text: &str) -> bool {
    let is_number = text.trim_start().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    serde_json::from_str::<&RawValue>(text).is_ok()
        && (!is_number || serde_json::from_str::<f64>(text).is_ok_and(f64::is_finite))
}

#[cfg(test)]
mod tests {
    use milepost_core::finish::RESULT_TOO_LARGE;

    use super::*;

    fn result(text: &str) -> Outcome {
        outcome(&Capped { bytes: text.into(), cut: false }, &Secrets::default()).unwrap()
    }

    #[test]
    fn json_stays_json_and_text_becomes_a_string() {
        assert_eq!(result(" {\"a\": 1.50}\n"), Outcome::Result("{\"a\": 1.50}".to_owned()));
        assert_eq!(result("sent 3 \"mails\""), Outcome::Result("\"sent 3 \\\"mails\\\"\"".to_owned()));
        assert_eq!(result(" \n"), Outcome::Done);
    }

    #[test]
    fn json_that_no_store_keeps_is_not_changed_into_another_value() {
        for json in [r#"{"a": "\u0000"}"#, r#""\ud800""#, "[1e999999]"] {
            assert_eq!(result(json), Outcome::Result(json.to_owned()), "the check of results refuses it");
        }
        assert_eq!(result("1e999999"), Outcome::Result("\"1e999999\"".to_owned()));
        assert_eq!(result("{\"a\":"), Outcome::Result("\"{\\\"a\\\":\"".to_owned()));
        assert_eq!(result("a\0b"), Outcome::Result("\"a\u{fffd}b\"".to_owned()));
    }

    #[test]
    fn a_cut_text_is_never_taken_for_json() {
        let cut = |bytes: &[u8]| outcome(&Capped { bytes: bytes.to_vec(), cut: true }, &Secrets::default());
        assert_eq!(cut(b"123"), Ok(Outcome::Result("\"123…\"".to_owned())));
        for json in [&b"[123"[..], b"{\"a\": [1, \"x", b"\"a string"] {
            assert_eq!(cut(json).unwrap_err().code, RESULT_TOO_LARGE);
        }
        for text in [&b"[info] started"[..], b"\"quoted\" words"] {
            assert!(cut(text).is_ok());
        }
    }

    #[test]
    fn json_is_not_cut_where_a_text_is() {
        let json = format!("[{}1]", "1,".repeat(40_000));
        assert_eq!(result(&json), Outcome::Result(json.clone()));
        let Outcome::Result(text) = result(&"é".repeat(40_000)) else { panic!("no result") };
        assert_eq!(text, format!("\"{}…\"", "é".repeat(32_768)));
    }
}
