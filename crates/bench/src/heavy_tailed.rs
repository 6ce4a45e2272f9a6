//! Graphs like those of real dependencies: few tasks have most of the successors, and few have most of the predecessors.
//!
//! New tasks prefer predecessors that have many successors (Barabási and Albert, Emergence of Scaling in Random Networks, 1999). The constants
//! reproduce the graph of the dependencies of 57,934 packages: 4.1 edges a task, depth 36, hundreds of predecessors at most.

use std::collections::BTreeSet;

/// The same arguments make the same graph.
const SEED: u64 = 7;
/// The maximum number of predecessors of a task.
const PREDECESSORS_MAX: u64 = 500;
/// The distribution of the number of predecessors is that of Pareto: this minimum, and the inverse of its exponent.
const PREDECESSORS_SCALE: f64 = 1.85;
const PREDECESSORS_TAIL: f64 = 0.62;
/// The share of predecessors that are chosen among the latest tasks, whatever their successors. More of them make the graph deeper.
const LATEST_SHARE: f64 = 0.16;
const LATEST_TASKS: u64 = 2_000;

/// Returns the predecessors of each task. The first task has about `hub` successors.
pub(super) fn predecessors(tasks: u64, hub: u64) -> Vec<BTreeSet<u64>> {
    let mut random = fastrand::Rng::with_seed(SEED);
    // Each task as often as it has successors, without the first one.
    let mut popular: Vec<u64> = Vec::new();
    let mut graph = vec![BTreeSet::new(); usize::from(tasks > 0)];
    for task in 1..tasks {
        let mut before = BTreeSet::new();
        if random.f64() < hub as f64 / tasks as f64 {
            before.insert(0);
        }
        let wanted = PREDECESSORS_SCALE / (1.0 - random.f64()).powf(PREDECESSORS_TAIL);
        for _ in before.len() as u64..(wanted as u64).min(PREDECESSORS_MAX).min(task) {
            let latest = random.f64() < LATEST_SHARE;
            before.insert(match random.choice(&popular) {
                Some(popular) if !latest => *popular,
                _ => random.u64(task.saturating_sub(LATEST_TASKS)..task),
            });
        }
        popular.extend(before.iter().filter(|before| **before > 0));
        graph.push(before);
    }
    graph
}
