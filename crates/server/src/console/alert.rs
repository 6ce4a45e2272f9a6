//! A problem that the overview page shows.

use super::form::Action;

/// Maximum number of causes of failures that are listed separately.
pub(super) const CAUSES_MAX: usize = 8;

/// A problem.
pub(crate) struct Alert {
    /// Whether an operator must act; otherwise it is only a warning.
    pub(crate) error: bool,
    pub(crate) title: String,
    pub(crate) words: String,
    /// The page with details.
    pub(crate) url: String,
    pub(crate) actions: Vec<Action>,
}

/// Creates an alert without actions, which links to another page.
pub(super) fn to_look_at(error: bool, title: String, words: &str, url: &str) -> Alert {
    Alert { error, title, words: words.to_owned(), url: url.to_owned(), actions: Vec::new() }
}
