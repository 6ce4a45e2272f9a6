//! The critical path: the tasks that determine how long a batch takes.

use std::time::Duration;

use super::graph::Graph;

/// The critical path of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Its tasks, in order.
    pub tasks: Vec<u32>,
    /// The sum of their durations.
    pub length: Duration,
}

impl Graph {
    /// Returns the longest path, with the durations that `duration` returns. Among paths of equal length the choice is deterministic.
    #[must_use]
    pub fn critical_path(&self, duration: impl Fn(u32) -> Duration) -> CriticalPath {
        let mut ends = vec![Duration::ZERO; self.len()];
        let mut before = vec![None; self.len()];
        for &task in self.order() {
            let mut start = Duration::ZERO;
            for &predecessor in self.predecessors(task) {
                let end = ends[predecessor as usize];
                if before[task as usize].is_none() || end > start {
                    before[task as usize] = Some(predecessor);
                    start = end;
                }
            }
            ends[task as usize] = start.saturating_add(duration(task));
        }
        let last = self.order().iter().copied().max_by_key(|&task| (ends[task as usize], u32::MAX - task));
        let mut tasks: Vec<u32> = std::iter::successors(last, |&task| before[task as usize]).collect();
        tasks.reverse();
        CriticalPath { tasks, length: last.map_or(Duration::ZERO, |task| ends[task as usize]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_path_is_the_longest_in_time_not_in_tasks() {
        let keys = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let graph = Graph::new(keys, vec![(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]).unwrap();
        let seconds = [1, 1, 1, 5, 1];
        let path = graph.critical_path(|task| Duration::from_secs(seconds[task as usize]));
        assert_eq!(path, CriticalPath { tasks: vec![0, 3, 4], length: Duration::from_secs(7) });
        assert_eq!(graph.critical_path(|_| Duration::ZERO).length, Duration::ZERO);
    }
}
