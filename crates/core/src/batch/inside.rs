//! What has failed in the batches that tasks of a batch are: what a rerun of what failed runs again there.

use std::collections::VecDeque;

use super::listing::{BatchView, TaskFilter, TaskView};
use super::operation::SeenBatch;
use crate::dag::state::TaskState;
use crate::ident::BatchId;
use crate::port::{BatchStore, StoreResult};

/// The states of tasks that a rerun of what failed runs again.
pub const FAILED: [TaskState; 2] = [TaskState::Failed, TaskState::Aborted];
/// The states of tasks that are batches in which something can have failed.
pub const OPEN: [TaskState; 3] = [TaskState::Active, TaskState::Failed, TaskState::Aborted];

/// A batch that is a task of another one, and what runs again in it.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The keys of the tasks that lead to it, joined by `/`.
    pub path: String,
    /// The batch.
    pub batch: BatchId,
    /// The generation that it was seen in.
    pub generation: u32,
    /// Its own tasks that run again, as they stand now.
    pub again: Vec<TaskView>,
    /// Whether it was stopped, and goes on.
    pub resumes: bool,
}

/// A batch that is still to be looked at.
struct Next {
    path: String,
    task: TaskView,
    /// Whether the batch around it is stopped, and stays so.
    within_stopped: bool,
    /// The place of that batch among those found.
    outer: Option<usize>,
}

/// Finds all batches in one, at any depth, in which a rerun of what failed goes on, outer ones before inner ones. `enters` says of which tasks
/// of the batch itself.
///
/// # Errors
/// What the store answers.
pub async fn failed_inside(
    row: &BatchView,
    enters: impl Fn(&TaskView) -> bool + Send,
    store: &(impl BatchStore + ?Sized),
) -> StoreResult<Vec<Inside>> {
    if is_list(row) {
        return Ok(Vec::new());
    }
    let next = |path, task, within_stopped, outer| Next { path, task, within_stopped, outer };
    let open = tasks_in(row, &OPEN, store).await?.into_iter().filter(|task| task.batch.is_some());
    let mut left: VecDeque<Next> =
        open.filter(enters).map(|task| next(task.key.clone(), task, row.stopped, None)).collect();
    let mut found: Vec<(Inside, Option<usize>)> = Vec::new();
    while let Some(Next { path, task, within_stopped, outer }) = left.pop_front() {
        let Some(id) = task.batch else { continue };
        let Some(row) = store.batch(id).await?.map(|detail| detail.row).filter(|row| !row.state.is_ended())
        else {
            continue;
        };
        let resumes = task.state != TaskState::Active && row.stopped && !within_stopped;
        let states = if is_list(&row) { &FAILED[..] } else { &OPEN[..] };
        let mut again = Vec::new();
        for task in tasks_in(&row, states, store).await? {
            if task.batch.is_some() {
                let path = format!("{path}/{}", task.key);
                left.push_back(next(path, task, row.stopped && !resumes, Some(found.len())));
            } else if FAILED.contains(&task.state) {
                again.push(task);
            }
        }
        found.push((Inside { path, batch: id, generation: row.generation, again, resumes }, outer));
    }
    Ok(that_go_on(found))
}

/// Whether the tasks of a batch are the items of a list, which are jobs.
fn is_list(row: &BatchView) -> bool {
    row.parent.as_ref().is_some_and(|parent| parent.items)
}

/// Those in which something runs again, and those around them.
fn that_go_on(found: Vec<(Inside, Option<usize>)>) -> Vec<Inside> {
    let mut goes_on: Vec<bool> =
        found.iter().map(|(inside, _)| inside.resumes || !inside.again.is_empty()).collect();
    // What lies in another one comes after it.
    for (at, (_, outer)) in found.iter().enumerate().rev() {
        if let Some(outer) = outer.filter(|_| goes_on[at]) {
            goes_on[outer] = true;
        }
    }
    found.into_iter().zip(goes_on).filter(|(_, goes_on)| *goes_on).map(|((inside, _), _)| inside).collect()
}

/// All tasks of a batch in these states, page by page; none are asked for where it has none.
async fn tasks_in(
    row: &BatchView,
    states: &[TaskState],
    store: &(impl BatchStore + ?Sized),
) -> StoreResult<Vec<TaskView>> {
    let counts = &row.counts;
    let mut tasks = Vec::new();
    if counts.active + counts.failed + counts.aborted == 0 {
        return Ok(tasks);
    }
    let mut filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
    loop {
        let page = store.batch_tasks(row.id, &filter).await?;
        let is_full = page.len() == filter.limit as usize;
        filter.after = page.last().map(|task| task.task);
        tasks.extend(page);
        if !is_full {
            return Ok(tasks);
        }
    }
}

impl Inside {
    /// What the store is told of it: that nothing is done if it was rerun meanwhile.
    #[must_use]
    pub const fn seen(&self) -> SeenBatch {
        SeenBatch { batch: self.batch, generation: self.generation }
    }
}
