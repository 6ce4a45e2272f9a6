//! Lists that stand with others on a page: each has pages of its own.

use std::fmt::Display;

use askama::Template;
use askama::filters::HtmlSafe;

/// A page of such a list, and the ways to its others.
pub(super) struct Part<T> {
    pub(super) rows: Vec<T>,
    pub(super) ways: Ways,
}

/// Links to the first page and to the one that follows; none where there is nothing.
#[derive(Debug, Template)]
#[template(path = "ways.html")]
pub(super) struct Ways {
    first: Option<String>,
    next: Option<String>,
    /// Whether the newest stand first.
    newest_first: bool,
}

impl HtmlSafe for Ways {}

impl<T> Part<T> {
    /// The page at `here` (empty: the first) of the rows that were found when one more than `max` were looked for. `cursor` says where a
    /// row stands, `url` where the page is that begins after it.
    pub(super) fn of<C: Display>(
        mut found: Vec<T>,
        max: u32,
        here: &str,
        cursor: impl Fn(&T) -> C,
        url: impl Fn(&str) -> String,
    ) -> Self {
        let is_all = found.len() <= max as usize;
        found.truncate(max as usize);
        let last = found.last().filter(|_| !is_all);
        let ways = Ways {
            first: (!here.is_empty()).then(|| url("")),
            next: last.map(|last| url(&cursor(last).to_string())),
            newest_first: false,
        };
        Self { rows: found, ways }
    }

    /// The same of a list whose newest rows stand first.
    pub(super) fn newest_first(mut self) -> Self {
        self.ways.newest_first = true;
        self
    }
}
