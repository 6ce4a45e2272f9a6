//! Output of a graph as SVG, from left to right, legible on light and dark pages.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use milepost_core::dag::state::TaskState;
use milepost_core::text::is_unprintable;
use milepost_layout::{BOX_HEIGHT, BOX_PADDING, CHAR_WIDTH, MARGIN, Picture, TaskBox};
use unicode_width::UnicodeWidthStr;

use super::Scene;
use super::labels::{label, mark};

/// The height of the legend in pixels.
const LEGEND: f64 = 22.0;
/// The number of columns of a key in its box; the tooltip shows the whole key.
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
    let picture = Picture::of(graph, |task| label(scene, task, KEY_WIDTH).width(), LEGEND)
        .context("--format text counts the tasks of each layer, and --format dot contains all of them")?;
    let (legend, legend_end) = legend(scene);
    let (width, height) = (picture.width.max(legend_end + MARGIN), picture.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        escaped(&scene.dag.definition().name)
    );
    svg.push_str(&legend);
    for line in &picture.lines {
        let _ = writeln!(svg, "<path d=\"{}\" marker-end=\"url(#end)\"/>", line.path);
    }
    for &task in graph.order() {
        node(scene, task, picture.boxes[task as usize], &mut svg);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn node(scene: &Scene, task: u32, TaskBox { x, middle, width }: TaskBox, svg: &mut String) {
    let (key, label) = (scene.dag.graph().key(task), label(scene, task, KEY_WIDTH));
    let state = scene.state(task);
    let class = state.map_or_else(String::new, |state| format!(" class=\"{state}\""));
    let words = state.map_or_else(|| key.to_owned(), |state| format!("{key}: {state}"));
    let _ = writeln!(
        svg,
        "<g{class}><title>{}</title><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"5\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escaped(&words),
        middle - BOX_HEIGHT / 2.0,
        x + BOX_PADDING,
        middle + 4.0,
        escaped(&label),
    );
}

/// Returns the legend of colours and marks, and its right edge.
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

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Some of these cannot be represented in XML; others change the direction of the surrounding text.
            c if is_unprintable(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
