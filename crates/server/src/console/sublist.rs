//! Paginated lists that share a page with others.

use std::fmt::Display;

use askama::Template;
use askama::filters::HtmlSafe;

/// One page of such a list, with links to others.
pub(super) struct Sublist<T> {
    pub(super) rows: Vec<T>,
    pub(super) ways: PageLinks,
}

/// Links to the first and the next page of a list, if they exist.
#[derive(Debug, Template)]
#[template(path = "ways.html")]
pub(super) struct PageLinks {
    first: Option<String>,
    next: Option<String>,
    /// Whether the list is ordered newest first.
    newest_first: bool,
}

impl HtmlSafe for PageLinks {}

impl<T> Sublist<T> {
    /// Builds the page at the cursor `here` (empty: the first page) from rows that were queried with `max` + 1. `cursor` returns
    /// the cursor of a row, `url` the URL of the page that begins after a cursor.
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
        let ways = PageLinks {
            first: (!here.is_empty()).then(|| url("")),
            next: last.map(|last| url(&cursor(last).to_string())),
            newest_first: false,
        };
        Self { rows: found, ways }
    }

    /// Marks the list as ordered newest first.
    pub(super) fn newest_first(mut self) -> Self {
        self.ways.newest_first = true;
        self
    }
}
