//! Output of a graph as text, layer by layer, for graphs that are too large for a drawing.

use milepost_cli_support::output::printable;
use milepost_core::dag::graph::Graph;
use milepost_core::dag::state::{Counts, TaskState};

use super::super::words;
use super::Scene;
use super::labels::{WIDTH, cut, legend, mark};

/// The number of tasks listed per layer.
const TASKS: usize = 12;
/// The number of predecessors listed per task.
const PREDECESSORS: usize = 4;
/// The number of layers listed from the beginning and from the end.
const LAYERS: (usize, usize) = (20, 5);

/// Lists the layers, each with its tasks and their predecessors.
pub(super) fn list(scene: &Scene) -> String {
    let graph = scene.dag.graph();
    let mut layers: Vec<Vec<u32>> = vec![Vec::new(); graph.depth() as usize];
    for &task in graph.order() {
        layers[graph.layer(task) as usize].push(task);
    }
    let (first, last) = LAYERS;
    let left_out = if layers.len() > first + last { first..layers.len() - last } else { 0..0 };
    let mut lines = vec![format!(
        "{}: {}, {} edges, {} layers",
        printable(&scene.dag.definition().name),
        words::tasks(graph.len() as u64),
        words::count(graph.edges() as u64),
        words::count(layers.len() as u64)
    )];
    lines.extend(legend(scene));
    for (number, tasks) in layers.iter().enumerate() {
        if number == left_out.start && !left_out.is_empty() {
            let tasks = layers[left_out.clone()].iter().map(|tasks| tasks.len() as u64).sum();
            lines.push(format!("┊ {} layers with {}", left_out.len(), words::tasks(tasks)));
        }
        if !left_out.contains(&number) {
            layer(scene, number, tasks, number + 1 == layers.len(), &mut lines);
        }
    }
    lines.join("\n")
}

fn layer(scene: &Scene, number: usize, tasks: &[u32], is_last: bool, lines: &mut Vec<String>) {
    let corner = match (number, is_last) {
        (0, _) => '┌',
        (_, true) => '└',
        _ => '├',
    };
    let rail = if is_last { ' ' } else { '│' };
    let states: Counts = tasks.iter().filter_map(|&task| scene.state(task)).collect();
    let standing = if states.total() == 0 { String::new() } else { format!(": {}", words::counts(&states)) };
    let head = format!("{corner}─ layer {}, {}{standing}", number + 1, words::tasks(tasks.len() as u64));
    lines.push(cut(&head, WIDTH));
    let mut tasks = tasks.to_vec();
    tasks.sort_by_key(|&task| scene.state(task).is_some_and(TaskState::is_ended));
    for &task in tasks.iter().take(TASKS) {
        lines.push(cut(&format!("{rail}    {}", described(scene, task)), WIDTH));
    }
    if tasks.len() > TASKS {
        lines.push(format!("{rail}    and {} more", words::count((tasks.len() - TASKS) as u64)));
    }
}

fn described(scene: &Scene, task: u32) -> String {
    let graph: &Graph = scene.dag.graph();
    let mark = scene.state(task).map_or_else(String::new, |state| format!("{} ", mark(state)));
    let before: Vec<&str> = graph.predecessors(task).iter().map(|&task| graph.key(task)).collect();
    let arrow = if before.is_empty() {
        String::new()
    } else {
        format!(" ← {}", words::some(&before, PREDECESSORS))
    };
    printable(&format!("{mark}{}{arrow}", graph.key(task))).replace('\n', "\u{fffd}")
}
