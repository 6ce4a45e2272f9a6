//! A window: consecutive changes of the feed, and their serialized text.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use milepost_core::feed::{Change, FeedPosition};

use super::filter::{ChangeType, Filter};

/// Maximum number of filters whose text is cached for a window.
const WRITTEN_MAX: usize = 64;

/// The changes that one query has returned. They are serialized once for all streams with the same filter.
pub(crate) struct Window {
    /// The position before the first change.
    pub(super) after: FeedPosition,
    /// The position after the last change.
    pub(super) end: FeedPosition,
    /// The changes, each with the position after it.
    pub(crate) changes: Vec<(FeedPosition, Change)>,
    written: Mutex<HashMap<Filter, Bytes>>,
}

impl Window {
    pub(super) fn new(after: FeedPosition, end: FeedPosition, changes: Vec<(FeedPosition, Change)>) -> Self {
        Self { after, end, changes, written: Mutex::default() }
    }

    /// Returns the text for this filter; empty if no change matches.
    pub(super) fn text(&self, filter: &Filter) -> Bytes {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = written.get(filter) {
            return text.clone();
        }
        let text = write(&self.changes, filter);
        if written.len() < WRITTEN_MAX {
            written.insert(filter.clone(), text.clone());
        }
        text
    }
}

/// Serializes the matching changes as server-sent events.
pub(super) fn write(changes: &[(FeedPosition, Change)], filter: &Filter) -> Bytes {
    let mut text = String::new();
    for (position, change) in changes.iter().filter(|(_, change)| filter.wants(change)) {
        // A change consists of strings, numbers and times, so serialization cannot fail. The result has one line.
        let data = serde_json::to_string(change).unwrap_or_default();
        let of = ChangeType::of(change).as_str();
        let _ = write!(text, "id: {position}\nevent: {of}\ndata: {data}\n\n");
    }
    Bytes::from(text)
}

/// Returns a heartbeat with the current position.
pub(super) fn heartbeat(position: &FeedPosition) -> Bytes {
    Bytes::from(format!(": heartbeat\nid: {position}\n\n"))
}

/// Returns a message about the stream itself. A client that reconnects continues at `position`, or at its last position.
pub(super) fn notice(event: &str, reason: &str, words: &str, position: Option<&FeedPosition>) -> Bytes {
    let data = serde_json::json!({ "reason": reason, "detail": words });
    let id = position.map_or_else(String::new, |position| format!("id: {position}\n"));
    Bytes::from(format!("{id}event: {event}\ndata: {data}\n\n"))
}
