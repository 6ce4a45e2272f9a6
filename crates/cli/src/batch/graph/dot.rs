//! Output of a graph in Graphviz's DOT language.

use std::fmt::Write as _;

use milepost_core::dag::state::TaskState;

use super::Scene;

pub(super) fn draw(scene: &Scene) -> String {
    let graph = scene.dag.graph();
    let mut dot = format!("digraph {} {{\n", quoted(&scene.dag.definition().name));
    dot.push_str(
        "  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=sans];\n",
    );
    for &task in graph.order() {
        let colour = scene.state(task).map_or_else(String::new, |state| {
            format!(", fillcolor={}, tooltip={}", quoted(fill(state)), quoted(state.as_str()))
        });
        let _ = writeln!(dot, "  {task} [label={}{colour}];", quoted(graph.key(task)));
    }
    for &task in graph.order() {
        for next in graph.successors(task) {
            let _ = writeln!(dot, "  {task} -> {next};");
        }
    }
    dot.push_str("}\n");
    dot
}

/// Quotes a string for DOT, in which a backslash begins an escape sequence.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

const fn fill(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "#ffffff",
        TaskState::Due => "#e8f0fe",
        TaskState::Active => "#aecbfa",
        TaskState::Failed => "#f6aea9",
        TaskState::Aborted => "#fde293",
        TaskState::Succeeded => "#a8dab5",
        TaskState::Skipped | TaskState::Canceled => "#dadce0",
    }
}
