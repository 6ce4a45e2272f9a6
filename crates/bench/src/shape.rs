//! The shapes of the batches of benchmarks.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use serde_json::json;

use super::heavy_tailed;
use super::target::QUEUE;
use super::workload::NOOP;

/// The name of the DAG.
pub(super) const DAG: &str = "milepost-bench";
/// The number of predecessors in the previous layer.
const EDGES_A_TASK: u64 = 4;

/// The size of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) tasks: u64,
    /// The number of tasks of a layer.
    pub(super) width: u64,
    /// About how many successors the first task of a heavy-tailed graph has.
    pub(super) hub: u64,
}

/// The shape of a graph.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Each task follows the previous one.
    Chain,
    /// All tasks follow the first one.
    Fan,
    /// One task follows all others.
    Join,
    /// Layers, in which each task follows four neighbours of the previous layer.
    Layered,
    /// Few tasks have most of the edges, as in real dependencies.
    HeavyTailed,
    /// The edges of a file: two keys per line, predecessor and successor, separated by a tab.
    File(PathBuf),
}

impl FromStr for Shape {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "chain" => Self::Chain,
            "fan" => Self::Fan,
            "join" => Self::Join,
            "layered" => Self::Layered,
            "heavy-tailed" => Self::HeavyTailed,
            path => Self::File(path.into()),
        })
    }
}

impl Shape {
    /// Creates a DAG of this shape. A file determines the number of its tasks.
    pub(super) fn dag(&self, Size { tasks, width, hub }: Size) -> Result<Dag> {
        let tasks = match self {
            Self::File(path) => tasks_of(path)?,
            Self::HeavyTailed => {
                let predecessors = heavy_tailed::predecessors(tasks, hub);
                (0..)
                    .zip(predecessors)
                    .map(|(task, before)| (key(task), before.into_iter().map(key).collect()))
                    .collect()
            }
            _ => (0..tasks).map(|task| (key(task), self.before(task, tasks, width))).collect(),
        };
        let mut definition = Definition::new(DAG);
        definition.tasks.reserve_exact(tasks.len());
        for (number, (key, after)) in tasks.into_iter().enumerate() {
            // The payload is the task's number, which is its position in key order. The handler identifies the task by it.
            let mut task = Task::job(NOOP).payload(json!(number)).after(after);
            task.queue = QUEUE.to_owned();
            definition = definition.task(key, task);
        }
        Ok(Dag::check(definition)?)
    }

    /// Returns the predecessors of a task.
    fn before(&self, task: u64, tasks: u64, width: u64) -> Vec<String> {
        match self {
            Self::Chain => (task.saturating_sub(1)..task).map(key).collect(),
            Self::Fan => (0..task.min(1)).map(key).collect(),
            Self::Join if task == 0 => (1..tasks).map(key).collect(),
            Self::Layered if task >= width => {
                let (layer, place) = (task / width, task % width);
                let neighbour = |edge| (layer - 1) * width + (place + edge) % width;
                (0..EDGES_A_TASK.min(width)).map(|edge| key(neighbour(edge))).collect()
            }
            Self::Join | Self::Layered | Self::HeavyTailed | Self::File(_) => Vec::new(),
        }
    }
}

fn key(task: u64) -> String {
    format!("t{task:06}")
}

/// Reads the tasks of a file of edges, with their predecessors.
fn tasks_of(path: &PathBuf) -> Result<BTreeMap<String, Vec<String>>> {
    let mut tasks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (before, task) in edges_of(path)? {
        tasks.entry(before.clone()).or_default();
        tasks.entry(task).or_default().push(before);
    }
    Ok(tasks)
}

fn edges_of(path: &PathBuf) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read {}; give chain, fan, join, layered, heavy-tailed or a file of edges",
            path.display()
        )
    })?;
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        match line.split_once('\t') {
            Some(("from", "to")) if number == 1 => {}
            Some((before, after)) if !after.contains('\t') => {
                edges.push((before.to_owned(), after.to_owned()));
            }
            _ => bail!("{}:{number}: an edge is two keys separated by a tab", path.display()),
        }
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_the_tasks_and_edges_that_it_is_asked_for() {
        for (shape, edges, depth) in
            [(Shape::Chain, 99, 100), (Shape::Fan, 99, 2), (Shape::Join, 99, 2), (Shape::Layered, 360, 10)]
        {
            let dag = shape.dag(Size { tasks: 100, width: 10, hub: 0 }).unwrap();
            assert_eq!(
                (dag.graph().len(), dag.graph().edges(), dag.graph().depth()),
                (100, edges, depth),
                "{shape:?}"
            );
        }
    }

    #[test]
    fn a_heavy_tailed_graph_has_few_tasks_with_most_of_the_edges() {
        let graph = heavy_tailed::predecessors(20_000, 6_000);
        let mut successors = vec![0_u64; graph.len()];
        for before in graph.iter().flatten() {
            successors[*before as usize] += 1;
        }
        assert!((5_500..6_500).contains(&successors[0]), "{}", successors[0]);
        let edges: u64 = successors.iter().sum();
        assert!((3.5..4.5).contains(&(edges as f64 / 20_000.0)), "{edges}");
        assert!(successors.iter().filter(|count| **count == 1).count() > 1_000);
        assert!(graph.iter().any(|before| before.len() > 200));
        let dag = Shape::HeavyTailed.dag(Size { tasks: 20_000, width: 0, hub: 6_000 }).unwrap();
        assert_eq!((dag.graph().len(), dag.graph().edges()), (20_000, edges as usize));
        assert!((20..60).contains(&dag.graph().depth()), "{}", dag.graph().depth());
    }

    #[test]
    fn a_line_that_is_no_edge_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from\tto\na\tb\nb c\n").unwrap();
        let error = Shape::File(file.path().to_owned())
            .dag(Size { tasks: 0, width: 0, hub: 0 })
            .unwrap_err()
            .to_string();
        assert!(error.contains(":3: an edge is two keys"), "{error}");
    }
}
