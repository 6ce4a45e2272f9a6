//! What the batches of a bench look like.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use serde_json::json;

use super::super::target::QUEUE;
use super::super::workload::NOOP;

/// How many tasks of the layer before a task of the next one comes after.
const EDGES_A_TASK: u64 = 4;

/// A graph.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// One after the other.
    Chain,
    /// All after one.
    Fan,
    /// One after all.
    Join,
    /// Layers, each task after four neighbours of the layer before.
    Layered,
    /// The edges of a file: two keys a line with a tab between them, before and after.
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
            path => Self::File(path.into()),
        })
    }
}

impl Shape {
    /// A DAG of this shape with so many tasks, in layers of `width`; a file has as many as it has.
    pub(super) fn dag(&self, tasks: u64, width: u64) -> Result<Dag> {
        let edges = match self {
            Self::File(path) => edges_of(path)?,
            Self::Chain => (1..tasks).map(|task| pair(task - 1, task)).collect(),
            Self::Fan => (1..tasks).map(|task| pair(0, task)).collect(),
            Self::Join => (1..tasks).map(|task| pair(task, 0)).collect(),
            Self::Layered => layered(tasks, width),
        };
        let mut after: std::collections::BTreeMap<String, Vec<String>> = match self {
            Self::File(_) => std::collections::BTreeMap::new(),
            _ => (0..tasks).map(|task| (key(task), Vec::new())).collect(),
        };
        for (before, task) in edges {
            after.entry(before.clone()).or_default();
            after.entry(task).or_default().push(before);
        }
        let mut definition = Definition::new("milepost-bench");
        for (number, (key, after)) in after.into_iter().enumerate() {
            // Its place in order is its number: what the handler knows it by.
            let mut task = Task::job(NOOP).payload(json!(number)).after(after);
            task.queue = QUEUE.to_owned();
            definition = definition.task(key, task);
        }
        Ok(Dag::check(definition)?)
    }
}

fn key(task: u64) -> String {
    format!("t{task:06}")
}

fn pair(before: u64, after: u64) -> (String, String) {
    (key(before), key(after))
}

fn layered(tasks: u64, width: u64) -> Vec<(String, String)> {
    (width..tasks)
        .flat_map(|task| {
            let (layer, place) = (task / width, task % width);
            (0..EDGES_A_TASK.min(width)).map(move |edge| {
                let before = (place + edge) % width;
                pair((layer - 1) * width + before, task)
            })
        })
        .collect()
}

fn edges_of(path: &PathBuf) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read {}; a shape is chain, fan, join, layered or a file of edges", path.display())
    })?;
    let mut edges = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty()) {
        match line.split_once('\t') {
            Some(("from", "to")) if number == 1 => {}
            Some((before, after)) if !after.contains('\t') => {
                edges.push((before.to_owned(), after.to_owned()));
            }
            _ => bail!("{}:{number}: an edge is two keys with a tab between them", path.display()),
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
            let dag = shape.dag(100, 10).unwrap();
            assert_eq!(
                (dag.graph().len(), dag.graph().edges(), dag.graph().depth()),
                (100, edges, depth),
                "{shape:?}"
            );
        }
    }

    #[test]
    fn a_line_that_is_no_edge_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from\tto\na\tb\nb c\n").unwrap();
        let error = Shape::File(file.path().to_owned()).dag(0, 0).unwrap_err().to_string();
        assert!(error.contains(":3: an edge is two keys"), "{error}");
    }
}
