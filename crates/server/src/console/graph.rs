//! The graph of a batch or of a DAG: drawn if it is small enough, otherwise summarized by level.

use std::collections::HashSet;
use std::fmt::Write as _;

use milepost_core::dag::graph::Graph;
use milepost_core::dag::state::{Counts, TaskState};

use super::batch_tasks::BatchTasks;
use super::format::cut;
use super::state_bar::StateBar;
use milepost_layout::{BOX_HEIGHT, BOX_PADDING, Line, Picture, TaskBox};

use crate::params::encoded;

/// Maximum number of tasks and edges in a drawing; larger graphs are summarized.
const TASKS_MAX: usize = 150;
const EDGES_MAX: usize = 600;
/// Maximum number of displayed characters of a key.
const KEY_CHARS: usize = 26;

/// A level of a graph that is not drawn.
pub(super) struct Level {
    pub(super) number: u32,
    pub(super) tasks: usize,
    pub(super) stack: StateBar,
    pub(super) counts: Counts,
}

/// Returns whether a graph of this size is drawn.
pub(super) const fn is_drawn(tasks: usize, edges: usize) -> bool {
    tasks <= TASKS_MAX && edges <= EDGES_MAX
}

/// Draws the graph as SVG; `None` if it is too large. Keys of tasks are escaped here. `url`: of the page with the tasks. `state`: of a task, none in a
/// graph without a batch. `path`: the tasks of a path that is highlighted.
pub(super) fn draw(
    graph: &Graph,
    url: &str,
    state: impl Fn(u32) -> Option<TaskState>,
    path: &[u32],
) -> Option<String> {
    if !is_drawn(graph.len(), graph.edges()) {
        return None;
    }
    // A key is preceded by a symbol and a space.
    let columns = |task: u32| cut(graph.key(task), KEY_CHARS).chars().count() + 2;
    let picture = Picture::of(graph, columns, 0.0).ok()?;
    let (width, height) = (picture.width, picture.height);
    let steps: HashSet<(u32, u32)> = path.windows(2).map(|step| (step[0], step[1])).collect();
    let mut svg = format!(
        "<svg class=\"dag\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"group\" \
         aria-label=\"Graph of the tasks\"><defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>"
    );
    for Line { from, to, path } in &picture.lines {
        let class = if steps.contains(&(*from, *to)) { " class=\"path\"" } else { "" };
        let _ = write!(svg, "<path{class} d=\"{path}\" marker-end=\"url(#end)\"/>");
    }
    for &task in graph.order() {
        let (key, TaskBox { x, middle, width }) = (graph.key(task), picture.boxes[task as usize]);
        let state = state(task).map(TaskState::as_str);
        let on_path = if path.contains(&task) { " path" } else { "" };
        let title = state.map(|state| format!(": {state}")).unwrap_or_default();
        let _ = write!(
            svg,
            "<a href=\"{url}task={}#tasks\"><g class=\"g-{}{on_path}\"><title>{}{title}</title>\
             <rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} {}</text></g></a>",
            encoded(key),
            state.unwrap_or("none"),
            escaped(key),
            middle - BOX_HEIGHT / 2.0,
            x + BOX_PADDING,
            middle + 4.0,
            state.map_or("", mark),
            escaped(&cut(key, KEY_CHARS)),
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

fn mark(state: &str) -> &'static str {
    match state {
        "active" => "▶",
        "failed" => "✕",
        "aborted" => "‖",
        "succeeded" => "✓",
        "skipped" => "»",
        "canceled" => "⊘",
        _ => "○",
    }
}

fn escaped(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string()).unwrap_or_default()
}

/// Counts the tasks of each level by state.
pub(super) fn levels(board: &BatchTasks) -> Vec<Level> {
    let Some(graph) = &board.graph else { return Vec::new() };
    let mut counts = vec![Counts::default(); graph.depth() as usize];
    for &task in graph.order() {
        counts[graph.layer(task) as usize].add(board.state(task));
    }
    let level = |(number, counts): (usize, Counts)| Level {
        number: u32::try_from(number).unwrap_or(u32::MAX),
        tasks: usize::try_from(counts.total()).unwrap_or(usize::MAX),
        stack: StateBar::of_tasks(&counts),
        counts,
    };
    counts.into_iter().enumerate().map(level).collect()
}
