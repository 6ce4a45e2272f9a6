//! How far a batch is: what the end of some tasks does to all others.

use super::graph::Graph;
use super::rule::{Decision, Outcome, Rule, Tally, decide};

/// Tasks that were decided, each once in the life of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Whose rule holds. Whoever looks at their conditions ends those that are false as skipped.
    pub run: Vec<u32>,
    /// Whose rule can never hold, with all that follows from it.
    pub skip: Vec<u32>,
}

/// The tallies of a batch's tasks and what was decided from them. All ends together look at each edge once.
#[derive(Clone, Debug)]
pub struct Progress<'g> {
    graph: &'g Graph,
    rules: &'g [Rule],
    tallies: Vec<Tally>,
    decisions: Vec<Decision>,
    outcomes: Vec<Option<Outcome>>,
}

impl<'g> Progress<'g> {
    /// Of a batch of which nothing has happened; `rules` has one for each task, by number.
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

    /// How the predecessors of a task ended.
    #[must_use]
    pub fn tally(&self, task: u32) -> &Tally {
        &self.tallies[task as usize]
    }

    /// What was decided for a task. One that ended before, by a person's hand, stays at [`Decision::Wait`].
    #[must_use]
    pub fn decision(&self, task: u32) -> Decision {
        self.decisions[task as usize]
    }

    /// How a task ended.
    #[must_use]
    pub fn outcome(&self, task: u32) -> Option<Outcome> {
        self.outcomes[task as usize]
    }

    /// The batch starts: decides the tasks that wait for none.
    pub fn start(&mut self) -> Settled {
        let mut settled = Settled::default();
        let mut skipped = Vec::new();
        for task in self.graph.roots() {
            self.settle(task, &mut settled, &mut skipped);
        }
        self.spread(skipped, &mut settled);
        settled
    }

    /// These tasks ended: decides what can be decided now, and what follows from what is skipped thereby.
    ///
    /// One that has ended already changes nothing, unless it had failed and now ended otherwise.
    pub fn end(&mut self, ended: impl IntoIterator<Item = (u32, Outcome)>) -> Settled {
        let mut settled = Settled::default();
        let mut skipped = Vec::new();
        // First all ends, then what follows: of tasks that are canceled together none is skipped for another one.
        let ended: Vec<_> = ended.into_iter().filter(|&(task, outcome)| self.record(task, outcome)).collect();
        for (task, outcome) in ended {
            self.count(task, outcome, &mut settled, &mut skipped);
        }
        self.spread(skipped, &mut settled);
        settled
    }

    /// A task that failed is tried again: what waits for it has one predecessor more that is open. What was
    /// decided stands.
    pub fn try_again(&mut self, task: u32) {
        if self.outcomes[task as usize] != Some(Outcome::Failed) {
            return;
        }
        self.outcomes[task as usize] = None;
        for &next in self.graph.successors(task) {
            self.tallies[next as usize].take_back(Outcome::Failed);
        }
    }

    fn spread(&mut self, mut skipped: Vec<u32>, settled: &mut Settled) {
        while let Some(task) = skipped.pop() {
            if self.record(task, Outcome::Skipped) {
                self.count(task, Outcome::Skipped, settled, &mut skipped);
            }
        }
    }

    /// Notes the end of a task; answers whether that is news.
    fn record(&mut self, task: u32, outcome: Outcome) -> bool {
        match self.outcomes[task as usize] {
            Some(Outcome::Failed) if outcome != Outcome::Failed => self.try_again(task),
            Some(_) => return false,
            None => {}
        }
        self.outcomes[task as usize] = Some(outcome);
        true
    }

    /// Counts the end of a task in all that wait for it.
    fn count(&mut self, task: u32, outcome: Outcome, settled: &mut Settled, skipped: &mut Vec<u32>) {
        let graph = self.graph;
        for &next in graph.successors(task) {
            self.tallies[next as usize].add(outcome);
            self.settle(next, settled, skipped);
        }
    }

    /// Decides a task that was not decided and has not ended.
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
