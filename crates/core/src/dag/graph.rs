//! The graph of a DAG, with tasks as dense numbers. All operations are linear in tasks and edges and do not recurse.

use super::edges::Edges;

/// The tasks of a checked DAG and their edges. A task's number is its index in the sorted list of keys, so it is always
/// the same in a given version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    keys: Vec<String>,
    predecessors: Edges,
    successors: Edges,
    order: Vec<u32>,
    layers: Vec<u32>,
}

/// Tasks that cannot be ordered: those in cycles, and those behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Circular {
    /// Cycles, each starting at its smallest task and in execution order. No two cycles share a task.
    pub(super) cycles: Vec<Vec<u32>>,
    /// Tasks that are in none of these cycles but follow one.
    pub(super) behind: Vec<u32>,
}

impl Graph {
    /// Creates the graph of tasks with these keys, sorted and distinct, and these edges (before, after), each once.
    pub(super) fn new(keys: Vec<String>, mut edges: Vec<(u32, u32)>) -> Result<Self, Circular> {
        edges.sort_unstable();
        let tasks = keys.len();
        let successors = Edges::new(tasks, edges.iter().copied());
        let predecessors = Edges::new(tasks, edges.iter().map(|&(before, after)| (after, before)));
        let (order, layers) = in_order(&predecessors, &successors);
        if order.len() < tasks {
            return Err(circular(&predecessors, &order));
        }
        Ok(Self { keys, predecessors, successors, order, layers })
    }

    /// Returns the number of tasks.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a checked DAG has tasks")]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of edges.
    #[must_use]
    pub const fn edges(&self) -> usize {
        self.successors.len()
    }

    /// Returns the key of a task.
    #[must_use]
    pub fn key(&self, task: u32) -> &str {
        &self.keys[task as usize]
    }

    /// Returns all keys, sorted; the index of a key is its task's number.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the task with this key.
    #[must_use]
    pub fn task(&self, key: &str) -> Option<u32> {
        let at = self.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()?;
        u32::try_from(at).ok()
    }

    /// Returns the predecessors of a task.
    #[must_use]
    pub fn predecessors(&self, task: u32) -> &[u32] {
        self.predecessors.of(task)
    }

    /// Returns the successors of a task.
    #[must_use]
    pub fn successors(&self, task: u32) -> &[u32] {
        self.successors.of(task)
    }

    /// Returns the number of predecessors of a task: `pre_cnt` when its batch starts.
    #[must_use]
    pub fn pre_cnt(&self, task: u32) -> u32 {
        self.predecessors.count(task)
    }

    /// Returns the tasks without predecessors.
    pub fn roots(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied().take_while(|&task| self.layer(task) == 0)
    }

    /// Returns all tasks in topological order, layer by layer.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the layer of a task: the length of the longest chain of tasks before it.
    #[must_use]
    pub fn layer(&self, task: u32) -> u32 {
        self.layers[task as usize]
    }

    /// Returns the number of layers: at least that many tasks run one after another.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.order.last().map_or(0, |&task| self.layer(task) + 1)
    }

    /// Returns these tasks and everything downstream of them, each once and in order: the tasks that a rerun from here runs again.
    #[must_use]
    pub fn downstream(&self, tasks: &[u32]) -> Vec<u32> {
        self.downstream_where(tasks, |_| true)
    }

    /// Works like [`downstream`](Self::downstream), but excludes the tasks that `enters` rejects and those reachable
    /// only through them. The given tasks are always included.
    #[must_use]
    pub fn downstream_where(&self, tasks: &[u32], enters: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut reached = vec![false; self.len()];
        let mut left = Vec::new();
        for &task in tasks {
            if !std::mem::replace(&mut reached[task as usize], true) {
                left.push(task);
            }
        }
        while let Some(task) = left.pop() {
            for &next in self.successors(task) {
                if !reached[next as usize] && enters(next) {
                    reached[next as usize] = true;
                    left.push(next);
                }
            }
        }
        self.order.iter().copied().filter(|&task| reached[task as usize]).collect()
    }
}

/// Returns the tasks that can be ordered, layer by layer, and the layer of each task.
fn in_order(predecessors: &Edges, successors: &Edges) -> (Vec<u32>, Vec<u32>) {
    let tasks = u32::try_from(predecessors.tasks()).unwrap_or(u32::MAX);
    let mut open: Vec<u32> = (0..tasks).map(|task| predecessors.count(task)).collect();
    let mut layers = vec![0; open.len()];
    let mut order: Vec<u32> = (0..tasks).filter(|&task| open[task as usize] == 0).collect();
    let mut at = 0;
    while let Some(&task) = order.get(at) {
        at += 1;
        for &next in successors.of(task) {
            open[next as usize] -= 1;
            if open[next as usize] == 0 {
                // The predecessor that is processed last is in the highest layer.
                layers[next as usize] = layers[task as usize] + 1;
                order.push(next);
            }
        }
    }
    (order, layers)
}

/// Finds the cycles among the tasks that could not be ordered. Each of these tasks has a predecessor among them, so
/// walking back from any of them leads into a cycle.
fn circular(predecessors: &Edges, ordered: &[u32]) -> Circular {
    const NEW: u32 = u32::MAX;
    let tasks = u32::try_from(predecessors.tasks()).unwrap_or(u32::MAX);
    let mut left = vec![true; predecessors.tasks()];
    ordered.iter().for_each(|&task| left[task as usize] = false);
    // The walk that visited each task first.
    let mut walks = vec![NEW; left.len()];
    let mut in_cycle = vec![false; left.len()];
    let mut cycles = Vec::new();
    for start in (0..tasks).filter(|&task| left[task as usize]) {
        let mut walk = Vec::new();
        let mut task = start;
        while walks[task as usize] == NEW {
            walks[task as usize] = start;
            walk.push(task);
            let before = predecessors.of(task).iter().copied().find(|&before| left[before as usize]);
            task = before.unwrap_or(task);
        }
        if walks[task as usize] == start {
            let first = walk.iter().position(|&passed| passed == task).unwrap_or_default();
            let mut cycle: Vec<u32> = walk.drain(first..).rev().collect();
            cycle.iter().for_each(|&task| in_cycle[task as usize] = true);
            let smallest = cycle.iter().enumerate().min_by_key(|&(_, task)| *task).map_or(0, |(at, _)| at);
            cycle.rotate_left(smallest);
            cycles.push(cycle);
        }
    }
    let behind = (0..tasks).filter(|&task| left[task as usize] && !in_cycle[task as usize]).collect();
    Circular { cycles, behind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(tasks: u32, edges: &[(u32, u32)]) -> Result<Graph, Circular> {
        Graph::new((0..tasks).map(|task| format!("t{task:06}")).collect(), edges.to_vec())
    }

    #[test]
    fn tasks_come_after_their_predecessors_in_layers_of_the_longest_way() {
        let graph = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4)]).unwrap();
        assert_eq!(graph.order(), [0, 1, 2, 3, 4]);
        assert_eq!((0..5).map(|task| graph.layer(task)).collect::<Vec<_>>(), [0, 1, 1, 2, 3]);
        assert_eq!((graph.depth(), graph.edges()), (4, 6));
        assert_eq!(graph.predecessors(3), [0, 1, 2]);
        assert_eq!((graph.pre_cnt(3), graph.roots().collect::<Vec<_>>()), (3, vec![0]));
        assert_eq!((graph.task("t000003"), graph.task("t3")), (Some(3), None));
    }

    #[test]
    fn what_comes_after_some_tasks_is_each_once_and_in_order() {
        let graph = graph(6, &[(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)]).unwrap();
        assert_eq!(graph.downstream(&[3, 2, 3]), [2, 3, 4, 5]);
        assert_eq!(graph.downstream(&[5]), [5]);
        assert_eq!(graph.downstream_where(&[2], |task| task != 3), [2, 4, 5]);
        assert_eq!(graph.downstream_where(&[3], |task| task != 5), [3]);
    }

    #[test]
    fn cycles_are_told_in_the_direction_of_work_and_what_is_behind_them_apart() {
        let circular =
            graph(8, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (6, 5), (5, 6), (4, 7)]).unwrap_err();
        assert_eq!(circular.cycles, [vec![1, 2, 3], vec![5, 6]]);
        assert_eq!(circular.behind, [4, 7]);
    }

    #[test]
    fn a_cycle_of_fifty_thousand_tasks_is_walked_without_recursion() {
        let edges: Vec<_> = (0..50_000).map(|task| (task, (task + 1) % 50_000)).collect();
        let circular = graph(50_000, &edges).unwrap_err();
        assert_eq!(circular.cycles, [(0..50_000).collect::<Vec<_>>()]);
    }
}
