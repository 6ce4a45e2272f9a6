//! What the store says about the batch when it is over.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use milepost::{HistoryEntry, JobState, Store, Verb};
use milepost_core::batch::listing::{BatchView, TaskFilter};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::BatchState;
use milepost_core::ident::BatchId;

use super::COUNTRY;

/// How a batch and the one of its items stand, and the histories of their jobs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// How many of the two are done.
    pub(super) done: u64,
    /// All their tasks, those that have not ended, and those that were skipped.
    pub(super) tasks: u64,
    pub(super) open: u64,
    pub(super) skipped: u64,
    /// The histories of each task's jobs: one, or one for each item. A task that was skipped has none.
    pub(super) histories: BTreeMap<String, Vec<Vec<HistoryEntry>>>,
    /// Which task comes after which.
    pub(super) edges: Vec<(String, String)>,
}

impl Facts {
    /// Reads them.
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
                histories.push(store.history(job).await?);
            }
            if let Some(items) = task.batch {
                facts.add(&view(store, items).await?);
                for item in store.batch_tasks(items, &TaskFilter::default()).await? {
                    let job = item.job.with_context(|| format!("item {} has no job", item.key))?;
                    histories.push(store.history(job).await?);
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

    /// The histories of all jobs.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &[HistoryEntry]> {
        self.histories.values().flatten().map(Vec::as_slice)
    }

    /// How many changes of all jobs are such.
    pub(super) fn changes(&self, such: impl Fn(&HistoryEntry) -> bool) -> u64 {
        self.jobs().flatten().filter(|entry| such(entry)).count() as u64
    }

    /// How many tasks began before one that they come after had ended.
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

/// Whether a change is the end of an attempt.
pub(super) fn is_end(entry: &HistoryEntry) -> bool {
    entry.from == Some(JobState::Running)
}

/// A batch as it stands now.
pub(super) async fn view(store: &dyn Store, batch: BatchId) -> Result<BatchView> {
    let detail = store.batch(batch).await?;
    Ok(detail.with_context(|| format!("batch {batch} is gone"))?.row)
}

/// The batch of the items, once they are known.
pub(super) async fn items(store: &dyn Store, batch: BatchId) -> Result<Option<BatchId>> {
    let tasks = store.batch_tasks(batch, &TaskFilter::default()).await?;
    Ok(tasks.into_iter().find(|task| task.key == COUNTRY).and_then(|task| task.batch))
}
