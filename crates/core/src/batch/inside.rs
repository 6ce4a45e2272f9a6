//! Failed tasks in inner batches (batches that are tasks of another batch), which a rerun of failed tasks includes.

use std::collections::VecDeque;

use super::listing::{BatchView, TaskFilter, TaskView};
use super::operation::SeenBatch;
use crate::dag::state::TaskState;
use crate::ident::BatchId;
use crate::port::{BatchStore, StoreResult};

/// The states of tasks that a rerun of failed tasks runs again.
pub const FAILED: [TaskState; 2] = [TaskState::Failed, TaskState::Aborted];
/// The states in which a task that is a batch can contain failed tasks.
pub const OPEN: [TaskState; 3] = [TaskState::Active, TaskState::Failed, TaskState::Aborted];

/// An inner batch, and the tasks that run again in it.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The keys of the tasks that lead to it, joined by `/`.
    pub path: String,
    /// The batch.
    pub batch: BatchId,
    /// The generation in which it was read.
    pub generation: u32,
    /// Its own tasks that run again, in their current state.
    pub again: Vec<TaskView>,
    /// Whether the inner batch is stopped and will be resumed.
    pub resumes: bool,
}

/// An inner batch that has not been examined yet.
struct Next {
    path: String,
    task: TaskView,
    /// Whether the enclosing batch is stopped and stays stopped.
    within_stopped: bool,
    /// The index of the enclosing batch in the results.
    outer: Option<usize>,
}

/// Finds all inner batches, at any depth, in which a rerun of failed tasks runs something again; outer batches come before inner ones.
/// `enters` selects the tasks of the batch itself whose inner batches are searched.
///
/// # Errors
/// Errors of the store.
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

/// Returns whether the tasks of a batch are the items of a list, which are jobs.
fn is_list(row: &BatchView) -> bool {
    row.parent.as_ref().is_some_and(|parent| parent.items)
}

/// Returns the batches in which something runs again, and the batches that enclose them.
fn that_go_on(found: Vec<(Inside, Option<usize>)>) -> Vec<Inside> {
    let mut goes_on: Vec<bool> =
        found.iter().map(|(inside, _)| inside.resumes || !inside.again.is_empty()).collect();
    // A nested batch comes after the batch that encloses it.
    for (at, (_, outer)) in found.iter().enumerate().rev() {
        if let Some(outer) = outer.filter(|_| goes_on[at]) {
            goes_on[outer] = true;
        }
    }
    found.into_iter().zip(goes_on).filter(|(_, goes_on)| *goes_on).map(|((inside, _), _)| inside).collect()
}

/// Returns all tasks of a batch in these states, read page by page. Skips the query if the counts show that there are none.
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
    /// Returns the batch and generation for the store, which does nothing if the batch was rerun since.
    #[must_use]
    pub const fn seen(&self) -> SeenBatch {
        SeenBatch { batch: self.batch, generation: self.generation }
    }
}
