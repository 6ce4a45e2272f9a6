//! `/audit`: the audit log. The filter is in the URL.

use askama::Template;
use milepost_core::audit::{AuditEntry, AuditFilter, WHATS};
use milepost_core::ident::{BatchId, JobId};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::format::{cut, query};
use super::page::{Drawn, Page, draw};
use crate::app::App;
use crate::params::{Query, encoded};

/// Number of entries on a page.
const ROWS: u32 = 50;
/// Maximum length of a displayed value, in characters.
const VALUE_CHARS: usize = 300;
/// Entries with up to this number of lines are expanded.
const OPEN: usize = 6;

/// The filter.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    who: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    before: String,
}

impl Search {
    fn query(&self, before: &str) -> String {
        query(&[("who", &self.who), ("what", &self.what), ("subject", &self.subject), ("before", before)])
    }

    fn filter(&self) -> AuditFilter {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        AuditFilter {
            who: some(&self.who),
            what: some(&self.what),
            subject: some(&self.subject),
            before: self.before.parse().ok(),
            limit: ROWS + 1,
        }
    }
}

/// A value of the subject that an entry changed: the value before, or the value after.
#[derive(Debug, PartialEq, Eq)]
struct ChangedValue {
    was: bool,
    name: String,
    value: String,
}

struct Row {
    entry: AuditEntry,
    /// The page of the subject.
    url: Option<String>,
    lines: Vec<ChangedValue>,
    open: bool,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    page: Page,
    search: Search,
    whats: &'static [&'static str],
    rows: Vec<Row>,
    next: Option<String>,
    /// The query of the first page.
    first: String,
}

pub(super) async fn list(app: App, Query(search): Query<Search>, page: Page) -> Drawn {
    let _permit = app.large.permit().await;
    let mut entries = app.store.audit_log(&search.filter()).await?;
    let more = entries.len() > ROWS as usize;
    entries.truncate(ROWS as usize);
    let next = entries.last().filter(|_| more).map(|last| search.query(&last.pos.to_string()));
    let rows = entries.into_iter().map(Row::of).collect();
    let first = search.query("");
    Ok(draw(&Audit { page, search, whats: &WHATS, rows, next, first }))
}

impl Audit {
    fn is_narrowed(&self) -> bool {
        !self.first.is_empty()
    }

    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

impl Row {
    fn of(entry: AuditEntry) -> Self {
        let lines = lines(&entry.detail);
        let url = entry.subject.as_deref().and_then(|subject| page_of(&entry.what, subject));
        Self { url, open: lines.len() <= OPEN, lines, entry }
    }
}

/// Returns the page of an entry's subject, if there is one.
fn page_of(what: &str, subject: &str) -> Option<String> {
    match what.split('.').next()? {
        "job" => subject.parse::<JobId>().ok().map(|job| format!("/jobs/{job}")),
        "bulk" => subject.parse::<JobId>().ok().map(|run| format!("/bulk/{run}")),
        "batch" => subject.parse::<BatchId>().ok().map(|batch| format!("/batches/{batch}")),
        "dag" => Some(format!("/batches?dag={}", encoded(subject))),
        "queue" => Some(format!("/jobs?queue={}", encoded(subject))),
        "schedule" => Some("/schedules".to_owned()),
        "subscription" => Some(format!("/events?subscription={}", encoded(subject))),
        "limit" => Some("/settings".to_owned()),
        _ => None,
    }
}

/// Returns the values that differ before and after, the one before first.
fn lines(detail: &Value) -> Vec<ChangedValue> {
    let none = Map::new();
    let side = |name: &str| detail.get(name).and_then(Value::as_object).unwrap_or(&none);
    let (before, after) = (side("before"), side("after"));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut lines = Vec::new();
    for name in names {
        let (was, is) = (before.get(name), after.get(name));
        if was == is {
            continue;
        }
        for (was, value) in [(true, was), (false, is)] {
            lines.extend(value.map(|value| ChangedValue { was, name: name.clone(), value: told(value) }));
        }
    }
    lines
}

fn told(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text, VALUE_CHARS),
        value => cut(&value.to_string(), VALUE_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_changed_is_told() {
        let line =
            |was, name: &str, value: &str| ChangedValue { was, name: name.into(), value: value.into() };
        let detail = json!({
            "before": { "state": "pending", "kind": "mail", "key": 1 },
            "after": { "state": "canceled", "kind": "mail", "why": ["a"] },
        });
        let told = [
            line(true, "key", "1"),
            line(true, "state", "pending"),
            line(false, "state", "canceled"),
            line(false, "why", "[\"a\"]"),
        ];
        assert_eq!(lines(&detail), told);
        assert_eq!(lines(&json!({ "after": { "jobs": 2 } })), [line(false, "jobs", "2")]);
        assert_eq!(lines(&json!(null)), []);
    }

    #[test]
    fn subjects_lead_to_their_pages() {
        let id = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
        assert_eq!(page_of("job.cancel", id), Some(format!("/jobs/{id}")));
        assert_eq!(page_of("bulk.set", id), Some(format!("/bulk/{id}")));
        assert_eq!(page_of("bulk.put", "mail"), None);
        assert_eq!(page_of("queue.pause", "a b"), Some("/jobs?queue=a%20b".to_owned()));
    }
}
