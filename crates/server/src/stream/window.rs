//! A stretch of the feed, and how it is written.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use milepost_core::feed::{Change, FeedPosition};

use super::filter::{ChangeType, Filter};

/// For how many filters a window keeps what it wrote.
const WRITTEN_MAX: usize = 64;

/// What happened between two looks at the store. It is written once for all watchers who want the same of it.
pub(crate) struct Window {
    /// The position before it.
    pub(super) after: FeedPosition,
    /// The position behind it.
    pub(super) end: FeedPosition,
    /// What happened, each with the position behind it.
    pub(crate) changes: Vec<(FeedPosition, Change)>,
    written: Mutex<HashMap<Filter, Bytes>>,
}

impl Window {
    pub(super) fn new(after: FeedPosition, end: FeedPosition, changes: Vec<(FeedPosition, Change)>) -> Self {
        Self { after, end, changes, written: Mutex::default() }
    }

    /// As a watcher with this filter gets it; nothing when nothing of it is wanted.
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

/// The changes that are wanted, as server-sent events.
pub(super) fn write(changes: &[(FeedPosition, Change)], filter: &Filter) -> Bytes {
    let mut text = String::new();
    for (position, change) in changes.iter().filter(|(_, change)| filter.wants(change)) {
        // Made of strings, numbers and times alone, which can always be written, on one line.
        let data = serde_json::to_string(change).unwrap_or_default();
        let of = ChangeType::of(change).as_str();
        let _ = write!(text, "id: {position}\nevent: {of}\ndata: {data}\n\n");
    }
    Bytes::from(text)
}

/// Says nothing but where the watcher is, and that the server is there.
pub(super) fn heartbeat(position: &FeedPosition) -> Bytes {
    Bytes::from(format!(": heartbeat\nid: {position}\n\n"))
}

/// Says something about the stream itself; a watcher that comes back begins at `position`, or where it was.
pub(super) fn notice(event: &str, reason: &str, words: &str, position: Option<&FeedPosition>) -> Bytes {
    let data = serde_json::json!({ "reason": reason, "detail": words });
    let id = position.map_or_else(String::new, |position| format!("id: {position}\n"));
    Bytes::from(format!("{id}event: {event}\ndata: {data}\n\n"))
}
