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
    /// The page that previews an action on what the alert is about.
    pub(crate) preview: Option<Preview>,
    pub(crate) actions: Vec<Action>,
}

/// A link to the preview of an action on many jobs.
pub(crate) struct Preview {
    pub(crate) label: &'static str,
    pub(crate) url: String,
}

/// Creates an alert without actions, which links to another page.
pub(super) fn to_look_at(error: bool, title: String, words: &str, url: &str) -> Alert {
    Alert { error, title, words: words.to_owned(), url: url.to_owned(), preview: None, actions: Vec::new() }
}
