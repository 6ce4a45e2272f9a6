//! Redaction of secrets in stored text. Servers and programs receive secrets, and their output is stored with jobs.

use std::fmt;
use std::sync::Arc;

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
        // A value can be escaped differently in JSON.
        let mut all: Vec<String> = long.flat_map(|value| [in_json(&value), value]).collect();
        // A value that is part of another one must come after it.
        all.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all.into())
    }

    /// Returns a set of these values and more.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = String>) -> Self {
        Self::new(self.0.iter().cloned().chain(more))
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
