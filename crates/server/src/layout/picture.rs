//! Where everything of a graph lies in a picture, from left to right.

use std::fmt::Write as _;

use milepost_core::dag::graph::Graph;

use super::{Edge, Layout, TooMuch, of};

/// Pixels.
const ROW: f64 = 38.0;
const BETWEEN_LAYERS: f64 = 80.0;
/// How high a box is.
pub const BOX_HEIGHT: f64 = 26.0;
/// What is free on either side of a box's text.
pub const BOX_PADDING: f64 = 12.0;
/// How wide a column of text is.
pub const CHAR_WIDTH: f64 = 7.2;
/// What is free around the picture.
pub const MARGIN: f64 = 16.0;

/// A graph with its place in pixels for everything.
#[derive(Clone, Debug)]
pub struct Picture {
    /// How wide it is.
    pub width: f64,
    /// How high it is.
    pub height: f64,
    /// The box of each task, by number.
    pub boxes: Vec<TaskBox>,
    /// Its edges.
    pub lines: Vec<Line>,
}

/// The box of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskBox {
    /// Where it begins.
    pub x: f64,
    /// How high its middle lies.
    pub middle: f64,
    /// How wide it is.
    pub width: f64,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Line {
    /// The task that is waited for.
    pub from: u32,
    /// The task that waits.
    pub to: u32,
    /// Its way, as the `d` of a path in SVG.
    pub path: String,
}

/// Where a layer begins and ends.
type Column = (f64, f64);

impl Picture {
    /// Of a graph. `columns`: how many columns of text the box of a task has. `top`: how many pixels stay free above it.
    ///
    /// # Errors
    /// [`TooMuch`] when nobody could read it.
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

/// How high the middle of a place lies.
fn height(top: f64, place: f64) -> f64 {
    top + place * ROW + ROW / 2.0
}

fn line(edge: &Edge, graph: &Graph, boxes: &[TaskBox], layers: &[Column], top: f64) -> Line {
    let (first, last) = (graph.layer(edge.from) as usize, graph.layer(edge.to) as usize);
    let (start, end) = (boxes[edge.from as usize], boxes[edge.to as usize]);
    // Past wider boxes of its layer, and only then up or down.
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

/// An edge from here to there that leaves and arrives level.
fn curve(path: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let middle = f64::midpoint(x, to_x);
    let _ = write!(path, "C{middle:.1} {y:.1} {middle:.1} {to_y:.1} {to_x:.1} {to_y:.1}");
}
