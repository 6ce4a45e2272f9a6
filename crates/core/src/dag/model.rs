//! In-memory model of a batch, for tests: the results that every store must produce, whatever the order in which workers finish tasks.

use super::graph::Graph;
use super::progress::{Progress, Settled};
use super::rule::{Decision, Outcome, Rule};
use super::state::{Counts, TaskState};

/// The scripted behavior of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The number of attempts that fail before one succeeds.
    pub failures: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The value of its condition.
    pub when: bool,
}

impl Script {
    /// Succeeds at the first attempt.
    pub const SUCCEEDS: Self = Self { failures: 0, max_attempts: 1, when: true };
    /// Fails permanently.
    pub const FAILS: Self = Self { failures: 1, max_attempts: 1, when: true };
    /// Has a false condition.
    pub const DECLINES: Self = Self { when: false, ..Self::SUCCEEDS };
}

/// A batch whose tasks follow their scripts.
#[derive(Clone, Debug)]
pub struct Model<'g> {
    progress: Progress<'g>,
    scripts: &'g [Script],
    attempts: Vec<u32>,
    ready: Vec<u32>,
}

impl<'g> Model<'g> {
    /// Starts a batch; `rules` and `scripts` have one element per task, by number.
    #[must_use]
    pub fn start(graph: &'g Graph, rules: &'g [Rule], scripts: &'g [Script]) -> Self {
        let progress = Progress::new(graph, rules);
        let mut model = Self { progress, scripts, attempts: vec![0; graph.len()], ready: Vec::new() };
        let settled = model.progress.start();
        model.release(settled);
        model
    }

    /// Returns the tasks that can run now.
    #[must_use]
    pub fn ready(&self) -> &[u32] {
        &self.ready
    }

    /// Returns the progress of the batch.
    #[must_use]
    pub const fn progress(&self) -> &Progress<'g> {
        &self.progress
    }

    /// Runs one attempt of the ready task at this index; returns the task.
    pub fn attempt(&mut self, place: usize) -> u32 {
        let task = self.ready[place];
        let script = self.scripts[task as usize];
        let attempts = &mut self.attempts[task as usize];
        *attempts += 1;
        let outcome = if *attempts > script.failures {
            Outcome::Succeeded
        } else if *attempts < script.max_attempts {
            return task;
        } else {
            Outcome::Failed
        };
        self.ready.swap_remove(place);
        let settled = self.progress.end([(task, outcome)]);
        self.release(settled);
        task
    }

    /// Cancels tasks that are not running.
    pub fn cancel(&mut self, tasks: &[u32]) {
        self.ready.retain(|task| !tasks.contains(task));
        let settled = self.progress.end(tasks.iter().map(|&task| (task, Outcome::Canceled)));
        self.release(settled);
    }

    /// Retries a failed task on behalf of an operator; the next attempt succeeds.
    pub fn try_again(&mut self, task: u32) {
        if self.progress.outcome(task) == Some(Outcome::Failed) {
            self.progress.try_again(task);
            self.attempts[task as usize] = self.scripts[task as usize].failures;
            self.ready.push(task);
        }
    }

    /// Runs until no task is ready; `choose` picks an index below the number of ready tasks.
    pub fn run(&mut self, mut choose: impl FnMut(usize) -> usize) {
        while !self.ready.is_empty() {
            let place = choose(self.ready.len());
            self.attempt(place);
        }
    }

    /// Returns the state of each task.
    #[must_use]
    pub fn states(&self) -> Vec<TaskState> {
        let tasks = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        (0..tasks).map(|task| self.state(task)).collect()
    }

    /// Returns the number of tasks in each state.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.states().into_iter().collect()
    }

    fn state(&self, task: u32) -> TaskState {
        match (self.progress.outcome(task), self.progress.decision(task)) {
            (Some(Outcome::Succeeded), _) => TaskState::Succeeded,
            (Some(Outcome::Failed), _) => TaskState::Failed,
            (Some(Outcome::Skipped), _) => TaskState::Skipped,
            (Some(Outcome::Canceled), _) => TaskState::Canceled,
            (None, Decision::Run) => TaskState::Active,
            (None, _) => TaskState::Waiting,
        }
    }

    /// Evaluates the conditions of tasks that were decided to run, including those decided as a consequence.
    fn release(&mut self, settled: Settled) {
        let mut settled = settled;
        while !settled.run.is_empty() {
            let open = |task: &u32| self.progress.outcome(*task).is_none();
            let run: Vec<u32> = settled.run.into_iter().filter(open).collect();
            let (run, declined): (Vec<u32>, Vec<u32>) =
                run.into_iter().partition(|&task| self.scripts[task as usize].when);
            self.ready.extend(run);
            settled = self.progress.end(declined.into_iter().map(|task| (task, Outcome::Skipped)));
        }
    }
}

#[cfg(test)]
mod tests;
