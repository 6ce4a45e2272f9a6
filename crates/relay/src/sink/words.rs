//! What clients say of their errors.

use std::error::Error;

/// An error with its causes, as far as they are not in its own words.
pub(super) fn in_full(error: &dyn Error) -> String {
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
