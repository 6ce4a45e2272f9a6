//! Formatting of client errors.

use std::error::Error;

/// Returns an error with its causes, except for causes that its message already contains.
#[must_use]
pub fn in_full(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
