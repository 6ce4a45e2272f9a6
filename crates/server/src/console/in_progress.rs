//! Bulk jobs and batches in progress, for the overview page.

use milepost_core::batch::listing::BatchView;
use milepost_core::bulk::listing::BulkView;
use milepost_core::ident::BatchId;

use super::alert_facts::Facts;
use super::batch;
use super::batches::progress;
use super::bulks::Row;
use super::form::Action;
use super::paces::Paces;
use super::page::Page;
use super::state_bar::StateBar;

/// Maximum number of bulk jobs, and of batches, that are shown.
const SHOWN: usize = 10;

/// Bulk jobs and batches in progress, each with its progress and the buttons that stop it.
pub(super) struct InProgress {
    pub(super) runs: Vec<Row>,
    pub(super) batches: Vec<Batch>,
    /// Whether there are more than are shown.
    pub(super) has_more: bool,
}

/// A batch in progress.
pub(super) struct Batch {
    pub(super) id: BatchId,
    pub(super) dag: String,
    pub(super) key: Option<String>,
    pub(super) progress: String,
    pub(super) standing: String,
    pub(super) bar: StateBar,
    pub(super) actions: Vec<Action>,
}

impl InProgress {
    pub(super) fn of(facts: &Facts, paces: &Paces, page: &Page) -> Self {
        let runs: Vec<&BulkView> =
            facts.bulks.iter().map(|(run, _)| run).filter(|run| !run.is_over()).collect();
        let batch = |view: &BatchView| Batch {
            id: view.id,
            dag: view.dag.clone(),
            key: view.key.clone(),
            progress: progress(&view.counts),
            standing: batch::standing(view),
            bar: StateBar::of_tasks(&view.counts),
            actions: batch::actions(view, page),
        };
        Self {
            has_more: runs.len() > SHOWN || facts.running_batches.len() > SHOWN,
            runs: runs.into_iter().take(SHOWN).map(|run| Row::of(run.clone(), paces, page)).collect(),
            batches: facts.running_batches.iter().take(SHOWN).map(batch).collect(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.batches.is_empty()
    }
}
