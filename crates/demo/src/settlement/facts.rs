//! The final state of the batch in the store.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use milepost::{HistoryEntry, JobState, Store, Verb};
use milepost_core::batch::listing::{BatchView, TaskFilter};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::BatchState;
use milepost_core::ident::BatchId;

use super::COUNTRY;

/// The states of a batch and of its inner batch of items, and the histories of their jobs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// How many of the two batches are done.
    pub(super) done: u64,
    /// Counts of all tasks, of those that have not ended, and of those that were skipped.
    pub(super) tasks: u64,
    pub(super) open: u64,
    pub(super) skipped: u64,
    /// The histories of each task's jobs: one, or one for each item. A skipped task has none.
    pub(super) histories: BTreeMap<String, Vec<Vec<HistoryEntry>>>,
    /// The edges of the DAG: predecessor and successor.
    pub(super) edges: Vec<(String, String)>,
}

impl Facts {
    /// Reads the state from the store.
    pub(super) async fn read(store: &dyn Store, batch: BatchId, dag: &Dag) -> Result<Self> {
        let graph = dag.graph();
        let after = |task: u32| graph.predecessors(task).iter().map(move |&before| (before, task));
        let edges = graph.order().iter().flat_map(|&task| after(task));
        let name = |task| graph.key(task).to_owned();
        let edges = edges.map(|(before, task)| (name(before), name(task))).collect();
        let mut facts = Self { edges, ..Self::default() };
        let outer = view(store, batch).await?;
        facts.add(&outer);
        for task in store.batch_tasks(batch, &TaskFilter::default()).await? {
            let mut histories = Vec::new();
            if let Some(job) = task.job {
                histories.push(store.complete_history(job).await?);
            }
            if let Some(items) = task.batch {
                facts.add(&view(store, items).await?);
                for item in store.batch_tasks(items, &TaskFilter::default()).await? {
                    let job = item.job.with_context(|| format!("item {} has no job", item.key))?;
                    histories.push(store.complete_history(job).await?);
                }
            }
            facts.histories.insert(task.key, histories);
        }
        Ok(facts)
    }

    fn add(&mut self, batch: &BatchView) {
        self.done += u64::from(batch.state == BatchState::Done);
        self.tasks += batch.counts.total();
        self.open += batch.counts.total() - batch.counts.ended();
        self.skipped += batch.counts.skipped;
    }

    /// Returns the histories of all jobs.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &[HistoryEntry]> {
        self.histories.values().flatten().map(Vec::as_slice)
    }

    /// Counts the state transitions of all jobs that satisfy a condition.
    pub(super) fn changes(&self, such: impl Fn(&HistoryEntry) -> bool) -> u64 {
        self.jobs().flatten().filter(|entry| such(entry)).count() as u64
    }

    /// Counts the tasks that started before one of their predecessors had ended.
    pub(super) fn too_early(&self) -> u64 {
        let places = |task: &str, such: fn(&HistoryEntry) -> bool| {
            let histories = self.histories.get(task).into_iter().flatten().flatten();
            histories.filter(move |entry| such(entry)).map(|entry| entry.pos)
        };
        let early = self.edges.iter().filter(|(before, task)| {
            let ended = places(before, |entry| entry.verb == Verb::Succeed).max();
            let began = places(task, |entry| entry.verb == Verb::Claim).min();
            ended.zip(began).is_some_and(|(ended, began)| began < ended)
        });
        early.count() as u64
    }
}

/// Returns whether a state transition ends an attempt.
pub(super) fn is_end(entry: &HistoryEntry) -> bool {
    entry.from == Some(JobState::Running)
}

/// Returns the current state of a batch.
pub(super) async fn view(store: &dyn Store, batch: BatchId) -> Result<BatchView> {
    let detail = store.batch(batch).await?;
    Ok(detail.with_context(|| format!("batch {batch} no longer exists"))?.row)
}

/// Returns the inner batch of the items, once it exists.
pub(super) async fn items(store: &dyn Store, batch: BatchId) -> Result<Option<BatchId>> {
    let tasks = store.batch_tasks(batch, &TaskFilter::default()).await?;
    Ok(tasks.into_iter().find(|task| task.key == COUNTRY).and_then(|task| task.batch))
}
