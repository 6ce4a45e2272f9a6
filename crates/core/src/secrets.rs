//! Redaction of secrets in stored text. Servers and programs receive secrets, and their output is stored with jobs.

use std::fmt;
use std::sync::Arc;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;

use self::encoded::{can_begin, length_at};

mod encoded;

/// The minimum length of a secret, in bytes. Shorter values occur in too many texts that contain no secret.
pub const SECRET_BYTES_MIN: usize = 8;
/// The text that replaces a secret.
pub const HIDDEN: &str = "[secret]";

/// A set of secret values. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// Creates a set of these values, without those shorter than [`SECRET_BYTES_MIN`] bytes.
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

    /// Returns the text with every secret replaced by [`HIDDEN`], also if it is escaped as in JSON, HTML or URLs, or is part of a text in Base64.
    /// Because texts are truncated, this includes the end of a secret
    /// at the start of the text and the beginning of a secret at its end, with or without an ellipsis.
    #[must_use]
    pub fn hide(&self, mut text: String) -> String {
        for secret in &*self.0 {
            text = hide_cut(hide_whole(text, secret), secret);
        }
        text
    }
}

/// Returns a value, and its forms that [`length_at`] does not find.
fn forms(value: &str) -> Vec<String> {
    let decoded = percent_decode_str(value).decode_utf8_lossy().into_owned();
    let mut forms = vec![in_json(value)];
    for text in [value, &decoded] {
        for before in 0..3 {
            forms.extend([
                in_base64(&STANDARD_NO_PAD, before, text),
                in_base64(&URL_SAFE_NO_PAD, before, text),
            ]);
        }
        forms.push(text.to_owned());
    }
    forms
}

/// Returns the characters that a value determines in the Base64 of a text in which it follows `before` bytes, modulo 3.
fn in_base64(engine: &impl base64::Engine, before: usize, value: &str) -> String {
    let text = engine.encode([&vec![0; before], value.as_bytes()].concat());
    text[(before * 8).div_ceil(6)..(before + value.len()) * 8 / 6].to_owned()
}

/// Replaces a secret, however it is escaped.
fn hide_whole(text: String, secret: &str) -> String {
    let Some(&first) = secret.as_bytes().first() else { return text };
    let mut hidden: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        let here = can_begin(text.as_bytes()[at], first).then(|| length_at(&text[at..], secret)).flatten();
        let Some(length) = here else {
            at += c.len_utf8();
            continue;
        };
        let so_far = hidden.get_or_insert_default();
        so_far.push_str(&text[copied..at]);
        so_far.push_str(HIDDEN);
        at += length;
        copied = at;
    }
    match hidden {
        Some(hidden) => hidden + &text[copied..],
        None => text,
    }
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Replaces the rest of a secret at the edges of a truncated text.
fn hide_cut(text: String, secret: &str) -> String {
    let whole = text.strip_prefix('…').unwrap_or(&text);
    let parts = || (SECRET_BYTES_MIN..secret.len()).rev().filter(|&at| secret.is_char_boundary(at));
    let ends = || {
        let ends = 1..=secret.len() - SECRET_BYTES_MIN;
        ends.filter(|&at| secret.is_char_boundary(at) && secret[at..] != *HIDDEN)
    };
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
    use base64::Engine as _;

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
            "p%c3%a4%2fss+%26+%3cword%3e",
            "%70%25C3%25A4/ss%20&%20%3Cword%3E",
            "pä/ss &amp; &lt;word&gt;",
            "p&#228;&#x2F;ss &#38; &#x3c;word>",
            r"pä\/ss & <word>",
            r"p\u00e4/ss \u0026 \u003Cword\u003e",
            r"p\\u00e4/ss & <word>",
            "s3cr/t x",
            "s3cr%252Ft%2520x",
        ];
        for encoded in encoded {
            assert_eq!(secrets.hide(format!("it was {encoded}!")), "it was [secret]!", "{encoded}");
        }
        let more = secrets.and(["another secret".to_owned()]);
        assert_eq!(more.hide("pä/ss%20&amp; <word> another%20secret".to_owned()), "[secret] [secret]");
        assert_eq!(more.hide("100 % & more \\ of + it: &amp".to_owned()), "100 % & more \\ of + it: &amp");
    }

    #[test]
    fn a_secret_with_the_characters_of_escapes_is_hidden_when_it_is_escaped() {
        let secrets =
            Secrets::new([r"CORP\nadmin\\pw".to_owned(), "pw%abcdefg".to_owned(), "my-[secret]".to_owned()]);
        let texts = [
            r"CORP\nadmin\\pw",
            r"CORP\\nadmin\\\\pw",
            r"CORP\\\\nadmin\\\\\\\\pw",
            "pw%abcdefg",
            "pw%25abcdefg",
            "my-[secret]",
        ];
        for text in texts {
            assert_eq!(secrets.hide(format!("{text} it was")), "[secret] it was", "{text}");
        }
    }

    #[test]
    fn long_secrets_and_long_runs_of_backslashes_end() {
        let long = "k".repeat(100_000);
        let secrets = Secrets::new([long.clone(), format!("aa{}b", "\\".repeat(40))]);
        assert_eq!(secrets.hide(format!("-{long}-")), "-[secret]-");
        let run = format!("aa{}c", "\\".repeat(60_000));
        assert_eq!(secrets.hide(run.clone()), run);
    }

    #[test]
    fn a_secret_within_base64_is_hidden() {
        let secret = "Tk<7f&aQ-z9Lm44";
        let secrets = Secrets::new([secret.to_owned()]);
        for user in ["", "a", "ab", "abc", "user:"] {
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let header = format!("Basic {}", engine.encode(format!("{user}{secret}")));
                let hidden = secrets.hide(header);
                assert!(hidden.contains(HIDDEN) && hidden.len() < 32, "{user}: {hidden}");
            }
        }
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
