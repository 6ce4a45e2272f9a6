//! Adjacency lists of a graph, stored in one array.

use super::counting::look;

/// For each task, the tasks at the other end of its edges, sorted by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    /// The offset of each task's list in `ends`, followed by the total length.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Edges {
    /// Creates the lists of `tasks` tasks from pairs (task, other end), in linear time. Pairs that are sorted by their
    /// other ends keep that order.
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

    /// Returns the other ends of a task's edges.
    pub(super) fn of(&self, task: u32) -> &[u32] {
        let at = task as usize;
        let ends = &self.ends[self.starts[at] as usize..self.starts[at + 1] as usize];
        look(ends.len());
        ends
    }

    /// Returns the number of edges of a task.
    pub(super) fn count(&self, task: u32) -> u32 {
        self.starts[task as usize + 1] - self.starts[task as usize]
    }

    /// Returns the number of tasks.
    pub(super) const fn tasks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of edges.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }
}
