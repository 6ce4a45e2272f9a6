//! `/batches`: batches and their DAGs.

use askama::Template;
use milepost_core::batch::listing::{BatchFilter, BatchView, VersionView};
use milepost_core::dag::state::{BatchState, Counts};
use milepost_core::ident::BatchId;
use serde::Deserialize;

use super::format::{count, query, several};
use super::page::{Drawn, Page, draw};
use super::state_bar::StateBar;
use crate::app::App;
use crate::params::{Query, encoded};

/// Number of batches on a page.
const ROWS: usize = 50;

/// The filter; empty fields are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    dag: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    inner: String,
    #[serde(default)]
    before: String,
}

#[derive(Template)]
#[template(path = "batches.html")]
struct Batches {
    page: Page,
    search: Search,
    states: &'static [BatchState],
    rows: Vec<Row>,
    dags: Vec<VersionView>,
    next: Option<String>,
}

/// A batch in a list.
pub(super) struct Row {
    pub(super) view: BatchView,
    pub(super) progress: String,
    pub(super) stack: StateBar,
}

impl Row {
    pub(super) fn of(view: BatchView) -> Self {
        Self { progress: progress(&view.counts), stack: StateBar::of_tasks(&view.counts), view }
    }
}

pub(super) async fn list(app: App, Query(search): Query<Search>, page: Page) -> Drawn {
    let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = BatchFilter {
        dag: some(&search.dag),
        state: search.state.parse().ok(),
        key: some(&search.key),
        inner: !search.inner.is_empty(),
        before: search.before.parse::<BatchId>().ok(),
        limit: ROWS as u32 + 1,
    };
    let (mut found, dags) = tokio::try_join!(app.store.batches(&filter), app.store.dags())?;
    let more = found.len() > ROWS;
    found.truncate(ROWS);
    let last = found.last().filter(|_| more).map(|batch| batch.id.to_string());
    let next = last.map(|before| {
        let Search { dag, state, key, inner, .. } = &search;
        query(&[("dag", dag), ("state", state), ("key", key), ("inner", inner), ("before", &before)])
    });
    let rows = found.into_iter().map(Row::of).collect();
    Ok(draw(&Batches { page, search, states: BatchState::ALL, rows, dags, next }))
}

impl Batches {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }

    fn is_narrowed(&self) -> bool {
        !(self.search.dag.is_empty()
            && self.search.state.is_empty()
            && self.search.key.is_empty()
            && self.search.before.is_empty())
    }
}

/// Formats the progress: `12 of 40 tasks ended (30 %)`.
pub(super) fn progress(counts: &Counts) -> String {
    let percent = (counts.ended() * 100).checked_div(counts.total()).unwrap_or(100);
    format!("{} of {} ended ({percent} %)", count(counts.ended()), several(counts.total(), "task", "tasks"))
}
