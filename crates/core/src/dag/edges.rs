//! Edges by the task they belong to, in one array.

use super::counting::look;

/// For each task the tasks at the other end of its edges, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    /// Where those of each task begin, and at last where all end.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Edges {
    /// Of `tasks` tasks, from pairs (task, other end). Linear; pairs in the order of their other ends stay so.
    pub(super) fn new(tasks: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0_u32; tasks + 1];
        for (task, _) in pairs.clone() {
            starts[task as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut free = starts.clone();
        let mut ends = vec![0; starts[tasks] as usize];
        for (task, end) in pairs {
            let at = &mut free[task as usize];
            ends[*at as usize] = end;
            *at += 1;
        }
        Self { starts, ends }
    }

    /// The other ends of a task's edges.
    pub(super) fn of(&self, task: u32) -> &[u32] {
        let at = task as usize;
        let ends = &self.ends[self.starts[at] as usize..self.starts[at + 1] as usize];
        look(ends.len());
        ends
    }

    /// How many edges a task has.
    pub(super) fn count(&self, task: u32) -> u32 {
        self.starts[task as usize + 1] - self.starts[task as usize]
    }

    /// How many tasks there are.
    pub(super) const fn tasks(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many edges there are.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }
}
