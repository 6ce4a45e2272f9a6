//! Redaction of secrets in stored text. Servers and programs receive secrets, and their output is stored with jobs.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The minimum length of a secret, in bytes. Shorter values occur in too many texts that contain no secret.
pub const SECRET_BYTES_MIN: usize = 8;
/// The text that replaces a secret.
pub const HIDDEN: &str = "[secret]";

/// What RFC 3986 calls unreserved is not encoded in URLs.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A set of secret values. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// Creates a set of these values and their encoded forms (JSON, percent-encoded and decoded, Base64, HTML), without those shorter than
    /// [`SECRET_BYTES_MIN`] bytes.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let long = values.into_iter().filter(|value| value.len() >= SECRET_BYTES_MIN);
        let forms = long.flat_map(|value| forms(&value));
        Self::of(forms.filter(|form| form.len() >= SECRET_BYTES_MIN).collect())
    }

    fn of(mut all: Vec<String>) -> Self {
        // A value that is part of another one must come after it.
        all.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all.into())
    }

    /// Returns a set of these values and more.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = String>) -> Self {
        let Self(more) = Self::new(more);
        Self::of(self.0.iter().chain(&*more).cloned().collect())
    }

    /// Returns the text with every secret replaced by [`HIDDEN`]. Because texts are truncated, this includes the end of a secret
    /// at the start of the text and the beginning of a secret at its end, with or without an ellipsis.
    #[must_use]
    pub fn hide(&self, mut text: String) -> String {
        for secret in &*self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), HIDDEN);
            }
            text = hide_cut(text, secret);
        }
        text
    }
}

/// Returns a value as programs and servers write it.
fn forms(value: &str) -> Vec<String> {
    let percent = utf8_percent_encode(value, RESERVED).to_string();
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut forms = vec![
        value.to_owned(),
        in_json(value),
        in_json(value).replace('/', "\\/"),
        percent_decode_str(value).decode_utf8_lossy().into_owned(),
        with_small_digits(&percent),
        percent.replace("%20", "+"),
        percent,
        html.replace('"', "&quot;").replace('\'', "&#39;"),
        html.replace('"', "&#34;").replace('\'', "&#x27;"),
        html,
    ];
    let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    forms.extend(engines.map(|engine| engine.encode(value)));
    forms
}

/// Returns a percent-encoded text with lowercase digits.
fn with_small_digits(percent: &str) -> String {
    let mut small = String::with_capacity(percent.len());
    let mut digits = 0;
    for c in percent.chars() {
        small.push(if digits > 0 { c.to_ascii_lowercase() } else { c });
        digits = if c == '%' { 2 } else { digits.max(1) - 1 };
    }
    small
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Replaces the rest of a secret at the edges of a truncated text.
fn hide_cut(text: String, secret: &str) -> String {
    let whole = text.strip_prefix('…').unwrap_or(&text);
    let parts = || (SECRET_BYTES_MIN..secret.len()).rev().filter(|&at| secret.is_char_boundary(at));
    let ends = || (1..=secret.len() - SECRET_BYTES_MIN).filter(|&at| secret.is_char_boundary(at));
    if let Some(rest) = ends().find_map(|at| whole.strip_prefix(&secret[at..])) {
        return hide_cut(format!("{HIDDEN}{rest}"), secret);
    }
    let whole = text.strip_suffix('…').unwrap_or(&text);
    match parts().find_map(|at| whole.strip_suffix(&secret[..at])) {
        Some(rest) => format!("{rest}{HIDDEN}"),
        None => text,
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let secrets =
            Secrets::new(["s3cret-token".to_owned(), "pa\"ss\\word".to_owned(), "short".to_owned()]);
        let hide = |text: &str| secrets.hide(text.to_owned());
        assert_eq!(hide("Bearer s3cret-token, s3cret-token"), "Bearer [secret], [secret]");
        assert_eq!(hide(r#"{"is":"pa\"ss\\word"}"#), r#"{"is":"[secret]"}"#);
        assert_eq!(hide("a short text"), "a short text");
        assert!(!format!("{secrets:?}").contains("s3cret"));
    }

    #[test]
    fn an_encoded_secret_is_hidden() {
        let secrets = Secrets::new(["pä/ss & <word>".to_owned(), "s3cr%2Ft%20x".to_owned()]);
        let encoded = [
            "p%C3%A4%2Fss%20%26%20%3Cword%3E",
            "p%c3%a4%2fss%20%26%20%3cword%3e",
            "p%C3%A4%2Fss+%26+%3Cword%3E",
            "pä/ss &amp; &lt;word&gt;",
            "pä\\/ss & <word>",
            "cMOkL3NzICYgPHdvcmQ+",
            "cMOkL3NzICYgPHdvcmQ-",
            "s3cr/t x",
        ];
        for encoded in encoded {
            assert_eq!(secrets.hide(format!("it was {encoded}!")), "it was [secret]!", "{encoded}");
        }
        let more = secrets.and(["another secret".to_owned()]);
        assert_eq!(more.hide("cMOkL3NzICYgPHdvcmQ+ another%20secret".to_owned()), "[secret] [secret]");
    }

    #[test]
    fn what_is_left_of_a_secret_where_a_text_was_cut_is_hidden() {
        let secrets = Secrets::new(["s3cret-token".to_owned()]);
        let hide = |text: &str| secrets.hide(text.to_owned());
        assert_eq!(hide("it was s3cret-tok…"), "it was [secret]");
        assert_eq!(hide("…et-token was it"), "[secret] was it");
        assert_eq!(hide("…oken was s3cret"), "…oken was s3cret", "too short to be hidden");
    }

    #[test]
    fn one_that_is_part_of_another_is_hidden_with_it() {
        let secrets = Secrets::new(["token-of-shop".to_owned(), "Bearer token-of-shop".to_owned()]);
        assert_eq!(secrets.hide("said Bearer token-of-shop!".to_owned()), "said [secret]!");
    }
}
