//! The drawing of a graph from left to right, in pixels.

use std::fmt::Write as _;

use milepost_core::dag::graph::Graph;

use super::{Edge, Layout, TooMuch, of};

/// Height of a row, in pixels.
const ROW: f64 = 38.0;
const BETWEEN_LAYERS: f64 = 80.0;
/// Height of a box.
pub const BOX_HEIGHT: f64 = 26.0;
/// Padding on either side of a box's text.
pub const BOX_PADDING: f64 = 12.0;
/// Width of a character.
pub const CHAR_WIDTH: f64 = 7.2;
/// Margin around the drawing.
pub const MARGIN: f64 = 16.0;

/// The drawing of a graph; all coordinates are in pixels.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The box of each task, by task number.
    pub boxes: Vec<TaskBox>,
    /// The edges.
    pub lines: Vec<Line>,
}

/// The box of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskBox {
    /// Left edge.
    pub x: f64,
    /// Vertical center.
    pub middle: f64,
    /// Width.
    pub width: f64,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Line {
    /// The predecessor.
    pub from: u32,
    /// The successor.
    pub to: u32,
    /// The line, as the `d` attribute of an SVG path.
    pub path: String,
}

/// The left and right edge of a layer.
type Column = (f64, f64);

impl Picture {
    /// Draws a graph. `columns`: the text width of a task's box, in characters. `top`: empty space above the graph, in pixels.
    ///
    /// # Errors
    /// [`TooMuch`] when the graph is too large to be read.
    pub fn of(graph: &Graph, columns: impl Fn(u32) -> usize, top: f64) -> Result<Self, TooMuch> {
        let layout = of(graph)?;
        let top = top + MARGIN;
        let mut boxes = vec![TaskBox::default(); graph.len()];
        let mut layers = vec![(0.0, 0.0_f64); graph.depth() as usize];
        for &task in graph.order() {
            let width = columns(task) as f64 * CHAR_WIDTH + 2.0 * BOX_PADDING;
            boxes[task as usize].width = width;
            let layer = &mut layers[graph.layer(task) as usize];
            layer.1 = layer.1.max(width);
        }
        let mut at = MARGIN;
        for layer in &mut layers {
            *layer = (at, at + layer.1);
            at = layer.1 + BETWEEN_LAYERS;
        }
        for &task in graph.order() {
            let place = &mut boxes[task as usize];
            place.x = layers[graph.layer(task) as usize].0;
            place.middle = height(top, layout.places[task as usize]);
        }
        let lines = layout.edges.iter().map(|edge| line(edge, graph, &boxes, &layers, top)).collect();
        Ok(Self {
            width: at - BETWEEN_LAYERS + MARGIN,
            height: height(top, rows(&layout)) + ROW / 2.0 + MARGIN,
            boxes,
            lines,
        })
    }
}

fn rows(layout: &Layout) -> f64 {
    layout.places.iter().copied().fold(0.0, f64::max)
}

/// Returns the vertical center of a position.
fn height(top: f64, place: f64) -> f64 {
    top + place * ROW + ROW / 2.0
}

fn line(edge: &Edge, graph: &Graph, boxes: &[TaskBox], layers: &[Column], top: f64) -> Line {
    let (first, last) = (graph.layer(edge.from) as usize, graph.layer(edge.to) as usize);
    let (start, end) = (boxes[edge.from as usize], boxes[edge.to as usize]);
    // The line first passes wider boxes of its layer horizontally.
    let mut at = (layers[first].1, start.middle);
    let mut path = format!("M{:.1} {:.1}H{:.1}", start.x + start.width, start.middle, at.0);
    for (&(left, right), &bend) in layers[first + 1..last].iter().zip(&edge.bends) {
        let y = height(top, bend);
        curve(&mut path, at, (left, y));
        let _ = write!(path, "H{right:.1}");
        at = (right, y);
    }
    curve(&mut path, at, (end.x, end.middle));
    Line { from: edge.from, to: edge.to, path }
}

/// Adds a curve that is horizontal at both ends.
fn curve(path: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let middle = f64::midpoint(x, to_x);
    let _ = write!(path, "C{middle:.1} {y:.1} {middle:.1} {to_y:.1} {to_x:.1} {to_y:.1}");
}
