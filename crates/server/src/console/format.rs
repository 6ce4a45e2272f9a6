//! Formatting of times, durations, numbers and states. HTML that is built here contains only known characters.

use std::fmt;

use askama::filters::HtmlSafe;
use jiff::Timestamp;

use crate::params::encoded;

pub(crate) use milepost_core::duration::between;
pub(crate) use milepost_core::format::{count, length, per_second, pretty, relative, several};

/// A time, relative and absolute; the style sheet shows one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) at: Timestamp,
    pub(crate) now: Timestamp,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, now } = *self;
        write!(
            f,
            "<time datetime=\"{at:.3}\" title=\"{at:.3}\"><span class=\"rel\">{}</span>\
             <span class=\"abs\">{at:.3}</span></time>",
            relative(at, now)
        )
    }
}

impl HtmlSafe for When {}

/// A state; the style sheet gives each a symbol and a color.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Badge(pub(crate) &'static str);

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<span class=\"state is-{0}\">{0}</span>", self.0)
    }
}

impl HtmlSafe for Badge {}

/// Truncates a text to its first characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Encodes the pairs with a value as a query.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let some = pairs.iter().filter(|(_, value)| !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(some).finish()
}

/// Returns the address of the page of a kind.
pub(super) fn kind_url(kind: &str) -> String {
    format!("/kinds/{}", encoded(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!((cut("äöü", 2), cut("äöü", 3)), ("äö…".to_owned(), "äöü".to_owned()));
    }
}
