//! Output of external programs and servers, as a job's result.

use milepost::Outcome;
use milepost_core::secrets::Secrets;
use milepost_http::Capped;

/// The most bytes kept of a possible result: a response body, or a line of a program's output.
pub(crate) const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Converts output to an outcome: JSON unchanged, other text as a JSON string, empty output without a result. Secrets are removed.
pub(crate) fn outcome(said: &Capped, secrets: &Secrets) -> Outcome {
    let text = secrets.hide(said.text());
    if text.is_empty() {
        Outcome::Done
    } else if !said.cut && is_storable(&text) {
        Outcome::Result(text)
    } else {
        Outcome::Result(serde_json::Value::String(text.replace('\0', "\u{fffd}")).to_string())
    }
}

/// Returns whether every store accepts the text as JSON. PostgreSQL rejects an escaped NUL, so such a text is stored as a string. The
/// parser here rejects lone surrogates and numbers out of range.
fn is_storable(text: &str) -> bool {
    !text.contains("\\u0000") && serde_json::from_str::<serde_json::Value>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> Outcome {
        outcome(&Capped { bytes: text.into(), cut: false }, &Secrets::default())
    }

    #[test]
    fn json_stays_json_and_text_becomes_a_string() {
        assert_eq!(result(" {\"a\": 1.50}\n"), Outcome::Result("{\"a\": 1.50}".to_owned()));
        assert_eq!(result("sent 3 \"mails\""), Outcome::Result("\"sent 3 \\\"mails\\\"\"".to_owned()));
        assert_eq!(result(" \n"), Outcome::Done);
    }

    #[test]
    fn what_a_store_would_refuse_is_kept_as_a_string() {
        for text in [r#"{"a": "\u0000"}"#, r#""\ud800""#, "1e999999", "{\"a\":"] {
            let Outcome::Result(json) = result(text) else { panic!("{text}") };
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
        assert_eq!(result("a\0b"), Outcome::Result("\"a\u{fffd}b\"".to_owned()));
    }

    #[test]
    fn a_cut_text_is_never_taken_for_json() {
        let cut = Capped { bytes: b"123".to_vec(), cut: true };
        assert_eq!(outcome(&cut, &Secrets::default()), Outcome::Result("\"123…\"".to_owned()));
    }
}
