//! A graph as SVG, from left to right, readable on light and dark pages.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use milepost_core::dag::state::TaskState;
use unicode_width::UnicodeWidthStr;

use super::text::{label, mark};
use super::{Scene, layout};

/// Pixels.
const ROW: f64 = 38.0;
const BOX_HEIGHT: f64 = 26.0;
const BOX_PADDING: f64 = 12.0;
const CHAR_WIDTH: f64 = 7.2;
const BETWEEN_LAYERS: f64 = 80.0;
const MARGIN: f64 = 16.0;
const LEGEND: f64 = 22.0;
/// How many columns of a key are written in its box; all of it is in its tooltip.
const KEY_WIDTH: usize = 32;

const STYLE: &str = "\
  :root { color-scheme: light dark; --page: #fff; --text: #202124; --line: #80868b; --box: #fff; --due: #e8f0fe;
    --active: #aecbfa; --failed: #f6aea9; --aborted: #fde293; --succeeded: #a8dab5; --ended: #dadce0 }
  @media (prefers-color-scheme: dark) { :root { --page: #202124; --text: #e8eaed; --line: #80868b; --box: #303134;
    --due: #283142; --active: #1a4d8f; --failed: #8c2f28; --aborted: #7a5c00; --succeeded: #1e6b37; --ended: #4a4d51 } }
  svg { background: var(--page) }
  text { font: 12px ui-monospace, monospace; fill: var(--text) }
  path { fill: none; stroke: var(--line); stroke-width: 1.2 }
  marker path { fill: var(--line); stroke: none }
  rect { fill: var(--box); stroke: var(--line) }
  .due rect { fill: var(--due) } .active rect { fill: var(--active) } .failed rect { fill: var(--failed) }
  .aborted rect { fill: var(--aborted) } .succeeded rect { fill: var(--succeeded) }
  .skipped rect, .canceled rect { fill: var(--ended); stroke-dasharray: 4 3 }
";

pub(super) fn draw(scene: &Scene) -> Result<String> {
    let graph = scene.dag.graph();
    let layout = layout::of(graph)
        .context("--format text counts what is in each layer, and --format dot has all of it")?;
    let columns = columns(scene);
    let (top, rows) = (MARGIN + LEGEND, layout.places.iter().copied().fold(0.0, f64::max));
    let y = |place: f64| top + place * ROW + ROW / 2.0;
    let (legend, legend_end) = legend(scene);
    let (width, height) = (columns.end.max(legend_end) + MARGIN, y(rows) + ROW / 2.0 + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        escaped(&scene.dag.definition().name)
    );
    svg.push_str(&legend);
    for edge in &layout.edges {
        let (first, last) = (graph.layer(edge.from), graph.layer(edge.to));
        let mut from = (columns.ends(first, scene, edge.from), y(layout.places[edge.from as usize]));
        // Past wider boxes of its layer, and only then up or down.
        let mut path = format!("M{:.1} {:.1}", from.0, from.1);
        from.0 = columns.of(first).1;
        let _ = write!(path, "H{:.1}", from.0);
        for (layer, &bend) in (first + 1..last).zip(&edge.bends) {
            let (start, end) = columns.of(layer);
            curve(&mut path, from, (start, y(bend)));
            let _ = write!(path, "L{end:.1} {:.1}", y(bend));
            from = (end, y(bend));
        }
        curve(&mut path, from, (columns.of(last).0, y(layout.places[edge.to as usize])));
        let _ = writeln!(svg, "<path d=\"{path}\" marker-end=\"url(#end)\"/>");
    }
    for &task in graph.order() {
        let (x, middle) = (columns.of(graph.layer(task)).0, y(layout.places[task as usize]));
        node(scene, task, (x, middle), &mut svg);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// An edge from here to there that leaves and arrives level.
fn curve(path: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let middle = f64::midpoint(x, to_x);
    let _ = write!(path, "C{middle:.1} {y:.1} {middle:.1} {to_y:.1} {to_x:.1} {to_y:.1}");
}

fn node(scene: &Scene, task: u32, (x, middle): (f64, f64), svg: &mut String) {
    let (key, label) = (scene.dag.graph().key(task), label(scene, task, KEY_WIDTH));
    let state = scene.state(task);
    let class = state.map_or_else(String::new, |state| format!(" class=\"{state}\""));
    let words = state.map_or_else(|| key.to_owned(), |state| format!("{key}: {state}"));
    let _ = writeln!(
        svg,
        "<g{class}><title>{}</title><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"5\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escaped(&words),
        middle - BOX_HEIGHT / 2.0,
        box_width(scene, task),
        x + BOX_PADDING,
        middle + 4.0,
        escaped(&label),
    );
}

/// What the colours and marks of a batch mean, and where that ends.
fn legend(scene: &Scene) -> (String, f64) {
    let (mut svg, mut x, mut end) = (String::new(), MARGIN, 0.0);
    for state in TaskState::ALL {
        if !scene.states.iter().flatten().any(|known| known == state) {
            continue;
        }
        let _ = writeln!(
            svg,
            "<g class=\"{state}\"><rect x=\"{x:.1}\" y=\"{MARGIN}\" width=\"12\" height=\"12\" rx=\"3\"/>\
             <text x=\"{:.1}\" y=\"{}\">{} {state}</text></g>",
            x + 17.0,
            MARGIN + 10.0,
            mark(*state)
        );
        end = x + 17.0 + CHAR_WIDTH * (state.as_str().len() as f64 + 2.0);
        x = end + 2.0 * CHAR_WIDTH;
    }
    (svg, end)
}

/// Where layers lie.
struct Columns {
    starts: Vec<f64>,
    widths: Vec<f64>,
    end: f64,
}

impl Columns {
    /// Where a layer begins and ends.
    fn of(&self, layer: u32) -> (f64, f64) {
        let start = self.starts[layer as usize];
        (start, start + self.widths[layer as usize])
    }

    /// Where the box of a task in a layer ends.
    fn ends(&self, layer: u32, scene: &Scene, task: u32) -> f64 {
        self.starts[layer as usize] + box_width(scene, task)
    }
}

fn columns(scene: &Scene) -> Columns {
    let graph = scene.dag.graph();
    let mut widths = vec![0.0_f64; graph.depth() as usize];
    for &task in graph.order() {
        let width = &mut widths[graph.layer(task) as usize];
        *width = width.max(box_width(scene, task));
    }
    let (mut starts, mut at) = (Vec::new(), MARGIN);
    for width in &widths {
        starts.push(at);
        at += width + BETWEEN_LAYERS;
    }
    Columns { starts, widths, end: at - BETWEEN_LAYERS }
}

fn box_width(scene: &Scene, task: u32) -> f64 {
    label(scene, task, KEY_WIDTH).width() as f64 * CHAR_WIDTH + 2.0 * BOX_PADDING
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
