//! A batch's graph: drawn where it can be read, else level by level.

use std::collections::HashSet;
use std::fmt::Write as _;

use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::Counts;

use super::board::Board;
use super::stack::Stack;
use super::words::cut;
use crate::layout;

/// How many tasks and edges are drawn; larger graphs are collapsed.
const TASKS_MAX: usize = 150;
const EDGES_MAX: usize = 600;
/// Pixels.
const ROW: f64 = 36.0;
const BOX_HEIGHT: f64 = 26.0;
const CHAR_WIDTH: f64 = 7.0;
const BETWEEN: f64 = 64.0;
const MARGIN: f64 = 14.0;
/// How many characters of a key are drawn.
const KEY_CHARS: usize = 26;

/// A level of a graph that is not drawn.
pub(super) struct Level {
    pub(super) number: u32,
    pub(super) tasks: usize,
    pub(super) stack: Stack,
    pub(super) counts: Counts,
}

/// The graph as SVG; `None` when it is too large to be read. Keys of tasks are escaped here.
pub(super) fn draw(board: &Board, batch_url: &str, path: &[u32]) -> Option<String> {
    let dag = board.dag.as_ref()?;
    let graph = dag.graph();
    if graph.len() > TASKS_MAX || graph.edges() > EDGES_MAX {
        return None;
    }
    let layout = layout::of(graph).ok()?;
    let columns = columns(dag);
    let y =
        |task: u32| MARGIN + layout.places.get(task as usize).copied().unwrap_or_default() * ROW + ROW / 2.0;
    let rows = layout.places.iter().copied().fold(0.0, f64::max);
    let (width, height) =
        (columns.last().map_or(0.0, |(_, end)| *end) + MARGIN, MARGIN * 2.0 + (rows + 1.0) * ROW);
    let steps: HashSet<(u32, u32)> = path.windows(2).map(|step| (step[0], step[1])).collect();
    let mut svg = format!(
        "<svg class=\"dag\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"The graph of its tasks\"><defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>"
    );
    for edge in &layout.edges {
        let (first, last) = (graph.layer(edge.from) as usize, graph.layer(edge.to) as usize);
        let mut from = (columns[first].1, y(edge.from));
        let own_end = columns[first].0 + box_width(graph.key(edge.from));
        let class = if steps.contains(&(edge.from, edge.to)) { " class=\"path\"" } else { "" };
        let mut line = format!("M{own_end:.1} {:.1}H{:.1}", from.1, from.0);
        for (layer, bend) in (first + 1..last).zip(&edge.bends) {
            let (start, end) = columns[layer];
            let at = MARGIN + bend * ROW + ROW / 2.0;
            curve(&mut line, from, (start, at));
            let _ = write!(line, "H{end:.1}");
            from = (end, at);
        }
        curve(&mut line, from, (columns[last].0, y(edge.to)));
        let _ = write!(svg, "<path{class} d=\"{line}\" marker-end=\"url(#end)\"/>");
    }
    for &task in graph.order() {
        let (key, x) = (graph.key(task), columns[graph.layer(task) as usize].0);
        let state = board.state(task);
        let on_path = if path.contains(&task) { " path" } else { "" };
        let _ = write!(
            svg,
            "<a href=\"{batch_url}?task={}#tasks\"><g class=\"g-{state}{on_path}\"><title>{}: {state}</title>\
             <rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} {}</text></g></a>",
            super::words::encoded(key),
            escaped(key),
            y(task) - BOX_HEIGHT / 2.0,
            box_width(key),
            x + 10.0,
            y(task) + 4.0,
            mark(state.as_str()),
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

fn box_width(key: &str) -> f64 {
    (cut(key, KEY_CHARS).chars().count() + 2) as f64 * CHAR_WIDTH + 20.0
}

/// Where each layer begins and ends.
fn columns(dag: &Dag) -> Vec<(f64, f64)> {
    let graph = dag.graph();
    let mut widths = vec![0.0_f64; graph.depth() as usize];
    for &task in graph.order() {
        let width = &mut widths[graph.layer(task) as usize];
        *width = width.max(box_width(graph.key(task)));
    }
    let mut at = MARGIN;
    widths
        .into_iter()
        .map(|width| {
            let start = at;
            at += width + BETWEEN;
            (start, start + width)
        })
        .collect()
}

/// An edge from here to there that leaves and arrives level.
fn curve(line: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let middle = f64::midpoint(x, to_x);
    let _ = write!(line, "C{middle:.1} {y:.1} {middle:.1} {to_y:.1} {to_x:.1} {to_y:.1}");
}

fn escaped(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string()).unwrap_or_default()
}

/// How many tasks stand where, level by level.
pub(super) fn levels(board: &Board) -> Vec<Level> {
    let Some(dag) = &board.dag else { return Vec::new() };
    let graph = dag.graph();
    let mut counts = vec![Counts::default(); graph.depth() as usize];
    for &task in graph.order() {
        counts[graph.layer(task) as usize].add(board.state(task));
    }
    let level = |(number, counts): (usize, Counts)| Level {
        number: u32::try_from(number).unwrap_or(u32::MAX),
        tasks: usize::try_from(counts.total()).unwrap_or(usize::MAX),
        stack: Stack::of_tasks(&counts),
        counts,
    };
    counts.into_iter().enumerate().map(level).collect()
}
