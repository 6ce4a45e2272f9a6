//! Progress of a batch: how the end of some tasks affects all others.

use super::graph::Graph;
use super::rule::{Decision, Outcome, Rule, Tally, decide};

/// The tasks that a call has decided. Each task is decided once, unless it is rerun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Tasks whose rule holds. The caller evaluates their conditions and ends those with a false one as skipped.
    pub run: Vec<u32>,
    /// Tasks whose rule can never hold, including those skipped as a consequence.
    pub skip: Vec<u32>,
}

/// The tallies of a batch's tasks and the decisions based on them. Over the whole batch, each edge is visited once.
#[derive(Clone, Debug)]
pub struct Progress<'g> {
    graph: &'g Graph,
    rules: &'g [Rule],
    tallies: Vec<Tally>,
    decisions: Vec<Decision>,
    outcomes: Vec<Option<Outcome>>,
}

impl<'g> Progress<'g> {
    /// Creates the progress of a batch that has not started; `rules` has one element per task, by number.
    #[must_use]
    pub fn new(graph: &'g Graph, rules: &'g [Rule]) -> Self {
        let tasks = u32::try_from(graph.len()).unwrap_or(u32::MAX);
        Self {
            graph,
            rules,
            tallies: (0..tasks).map(|task| Tally::new(graph.pre_cnt(task))).collect(),
            decisions: vec![Decision::Wait; graph.len()],
            outcomes: vec![None; graph.len()],
        }
    }

    /// Returns the outcomes of a task's predecessors.
    #[must_use]
    pub fn tally(&self, task: u32) -> &Tally {
        &self.tallies[task as usize]
    }

    /// Returns the decision for a task. A task that an operator ended before it was decided stays at [`Decision::Wait`].
    #[must_use]
    pub fn decision(&self, task: u32) -> Decision {
        self.decisions[task as usize]
    }

    /// Returns the outcome of a task.
    #[must_use]
    pub fn outcome(&self, task: u32) -> Option<Outcome> {
        self.outcomes[task as usize]
    }

    /// Starts the batch: decides the tasks without predecessors.
    pub fn start(&mut self) -> Settled {
        let mut settled = Settled::default();
        let mut skipped = Vec::new();
        for task in self.graph.roots() {
            self.settle(task, &mut settled, &mut skipped);
        }
        self.spread(skipped, &mut settled);
        settled
    }

    /// Records the ends of these tasks, and decides every task that can be decided now, including the consequences of skipped tasks.
    ///
    /// A task that has already ended is ignored, unless it had failed and now has another outcome.
    pub fn end(&mut self, ended: impl IntoIterator<Item = (u32, Outcome)>) -> Settled {
        let mut settled = Settled::default();
        let mut skipped = Vec::new();
        // All ends are recorded before their consequences are computed, so that of tasks that are canceled together
        // none is skipped because of another.
        let ended: Vec<_> = ended.into_iter().filter(|&(task, outcome)| self.record(task, outcome)).collect();
        for (task, outcome) in ended {
            self.count(task, outcome, &mut settled, &mut skipped);
        }
        self.spread(skipped, &mut settled);
        settled
    }

    /// Reopens a failed task for a retry: its successors have one more open predecessor. Decisions are not reverted.
    pub fn try_again(&mut self, task: u32) {
        if self.outcomes[task as usize] != Some(Outcome::Failed) {
            return;
        }
        self.outcomes[task as usize] = None;
        self.take_back(task, Outcome::Failed);
    }

    /// Reopens these tasks, whatever their outcome: their decisions are discarded and made again where possible. Tasks
    /// downstream of them that are not in the list stay as they are, so a rerun also lists [them](Graph::downstream).
    pub fn rerun(&mut self, tasks: &[u32]) -> Settled {
        for &task in tasks {
            self.decisions[task as usize] = Decision::Wait;
            if let Some(outcome) = self.outcomes[task as usize].take() {
                self.take_back(task, outcome);
            }
        }
        let mut settled = Settled::default();
        let mut skipped = Vec::new();
        tasks.iter().for_each(|&task| self.settle(task, &mut settled, &mut skipped));
        self.spread(skipped, &mut settled);
        settled
    }

    fn take_back(&mut self, task: u32, outcome: Outcome) {
        for &next in self.graph.successors(task) {
            self.tallies[next as usize].take_back(outcome);
        }
    }

    fn spread(&mut self, mut skipped: Vec<u32>, settled: &mut Settled) {
        while let Some(task) = skipped.pop() {
            if self.record(task, Outcome::Skipped) {
                self.count(task, Outcome::Skipped, settled, &mut skipped);
            }
        }
    }

    /// Records the end of a task; returns whether anything changed.
    fn record(&mut self, task: u32, outcome: Outcome) -> bool {
        match self.outcomes[task as usize] {
            Some(Outcome::Failed) if outcome != Outcome::Failed => self.try_again(task),
            Some(_) => return false,
            None => {}
        }
        self.outcomes[task as usize] = Some(outcome);
        true
    }

    /// Adds the outcome of a task to the tallies of its successors.
    fn count(&mut self, task: u32, outcome: Outcome, settled: &mut Settled, skipped: &mut Vec<u32>) {
        let graph = self.graph;
        for &next in graph.successors(task) {
            self.tallies[next as usize].add(outcome);
            self.settle(next, settled, skipped);
        }
    }

    /// Decides a task that has neither been decided nor ended.
    fn settle(&mut self, task: u32, settled: &mut Settled, skipped: &mut Vec<u32>) {
        let at = task as usize;
        if self.decisions[at] != Decision::Wait || self.outcomes[at].is_some() {
            return;
        }
        self.decisions[at] = decide(self.rules[at], &self.tallies[at]);
        match self.decisions[at] {
            Decision::Wait => {}
            Decision::Run => settled.run.push(task),
            Decision::Skip => {
                settled.skip.push(task);
                skipped.push(task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a → b → d, a → c → d.
    fn diamond() -> Graph {
        let keys = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        Graph::new(keys, vec![(0, 1), (0, 2), (1, 3), (2, 3)]).unwrap()
    }

    fn settled(run: &[u32], skip: &[u32]) -> Settled {
        Settled { run: run.to_vec(), skip: skip.to_vec() }
    }

    #[test]
    fn an_end_that_is_told_again_changes_nothing() {
        let (graph, rules) = (diamond(), [Rule::AllSuccess; 4]);
        let mut progress = Progress::new(&graph, &rules);
        assert_eq!(progress.start(), settled(&[0], &[]));
        assert_eq!(progress.end([(0, Outcome::Succeeded)]), settled(&[1, 2], &[]));
        assert_eq!(progress.end([(1, Outcome::Succeeded), (1, Outcome::Succeeded)]), Settled::default());
        assert_eq!(progress.end([(1, Outcome::Failed)]), Settled::default());
        assert_eq!((progress.tally(3).succeeded, progress.tally(3).open()), (1, 1));
        assert_eq!(progress.end([(2, Outcome::Succeeded)]), settled(&[3], &[]));
    }

    #[test]
    fn a_failed_task_that_is_canceled_skips_what_waited_for_it() {
        let (graph, rules) = (diamond(), [Rule::AllSuccess; 4]);
        let mut progress = Progress::new(&graph, &rules);
        progress.start();
        assert_eq!(progress.end([(0, Outcome::Failed)]), Settled::default());
        assert_eq!(progress.end([(0, Outcome::Canceled)]), settled(&[], &[1, 2, 3]));
        assert_eq!(progress.decision(3), Decision::Skip);
    }

    #[test]
    fn what_ran_because_of_a_failure_does_not_run_again_after_the_next_try() {
        let (graph, rules) = (diamond(), [Rule::AllSuccess, Rule::OneFailed, Rule::AllDone, Rule::AllDone]);
        let mut progress = Progress::new(&graph, &rules);
        progress.start();
        assert_eq!(progress.end([(0, Outcome::Failed)]), settled(&[1, 2], &[]));
        progress.try_again(0);
        assert_eq!(progress.tally(1).open(), 1);
        assert_eq!(progress.end([(0, Outcome::Failed)]), Settled::default());
    }

    #[test]
    fn a_rerun_decides_anew_from_what_stays() {
        let (graph, rules) = (diamond(), [Rule::AllSuccess; 4]);
        let mut progress = Progress::new(&graph, &rules);
        progress.start();
        progress.end([(0, Outcome::Succeeded)]);
        progress.end([(1, Outcome::Succeeded), (2, Outcome::Skipped)]);
        assert_eq!(progress.outcome(3), Some(Outcome::Skipped));
        assert_eq!(progress.rerun(&graph.downstream(&[2])), settled(&[2], &[]));
        assert_eq!((progress.tally(3).succeeded, progress.tally(3).open()), (1, 1));
        assert_eq!(progress.end([(2, Outcome::Succeeded)]), settled(&[3], &[]));
    }
}
