//! Drawing of a small graph with boxes and lines, from top to bottom.

mod canvas;
mod route;

use milepost_cli_support::output::printable;
use milepost_core::dag::graph::Graph;
use unicode_width::UnicodeWidthStr;

use self::canvas::Canvas;
use self::route::Wire;
use super::labels::{self, WIDTH, legend};
use super::{Scene, layout};

/// The maximum number of tasks in a drawing.
const TASKS_MAX: usize = 60;
/// The height of a box in rows.
const BOX: usize = 3;
/// The minimum distance between two items of a layer, in columns.
const GAP: usize = 2;

/// The tried offsets of outgoing lines from the middle of a box. The first one with which all lines are distinguishable is used.
const SHIFTS: [isize; 3] = [0, -1, 1];

/// An item of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Task(u32),
    /// The edges of a task that pass through the layer.
    Bend(u32),
}

/// An item with its position.
struct Placed {
    thing: Thing,
    label: String,
    left: usize,
    width: usize,
}

impl Placed {
    /// Returns whether this is a task with successors.
    fn leads_on(&self, graph: &Graph) -> bool {
        matches!(self.thing, Thing::Task(task) if !graph.successors(task).is_empty())
    }

    /// Returns the column from which outgoing lines start.
    const fn port(&self, shift: isize) -> usize {
        match self.thing {
            Thing::Task(_) => self.middle().saturating_add_signed(shift),
            Thing::Bend(_) => self.middle(),
        }
    }

    const fn middle(&self) -> usize {
        self.left + self.width / 2
    }
}

/// Draws a graph. Returns `None` if it is too large, if its lines would be ambiguous, or if a key has characters that are not one column
/// wide.
pub(super) fn draw(scene: &Scene) -> Option<String> {
    let graph = scene.dag.graph();
    if graph.len() > TASKS_MAX || graph.keys().iter().any(|key| key.width() != key.chars().count()) {
        return None;
    }
    let layout = layout::of(graph).ok()?;
    let layers = place(scene, &layout)?;
    let mut canvas = Canvas::default();
    let mut top = 0;
    for (number, layer) in layers.iter().enumerate() {
        for placed in layer {
            draw_thing(scene, placed, top, &mut canvas);
        }
        top += BOX;
        let Some(below) = layers.get(number + 1) else { break };
        let (shift, rows) = SHIFTS.into_iter().find_map(|shift| {
            let wires = wires(&layout, graph, number, (layer, shift), below);
            Some((shift, route::draw(&wires, top, &mut canvas)?))
        })?;
        for placed in layer.iter().filter(|placed| placed.leads_on(graph)) {
            canvas.put(top - 1, placed.port(shift), '┬');
        }
        top += rows;
    }
    let legend = legend(scene).map_or_else(String::new, |legend| format!("{legend}\n\n"));
    Some(format!("{legend}{canvas}"))
}

/// Places all items in their layers, from left to right, each close to its predecessors.
fn place(scene: &Scene, layout: &layout::Layout) -> Option<Vec<Vec<Placed>>> {
    let graph = scene.dag.graph();
    let mut layers: Vec<Vec<(f64, Thing)>> = vec![Vec::new(); graph.depth() as usize];
    for &task in graph.order() {
        layers[graph.layer(task) as usize].push((layout.places[task as usize], Thing::Task(task)));
    }
    for edge in &layout.edges {
        for (layer, &bend) in (graph.layer(edge.from) as usize + 1..).zip(&edge.bends) {
            if !layers[layer].contains(&(bend, Thing::Bend(edge.from))) {
                layers[layer].push((bend, Thing::Bend(edge.from)));
            }
        }
    }
    let widest = layers.iter().map(|layer| packed(scene, layer)).max()?;
    if widest > WIDTH {
        return None;
    }
    let places = layers.iter().flatten().map(|(place, _)| *place);
    let scale = places.fold(0.0_f64, f64::max) + 1.0;
    layers.iter_mut().for_each(|layer| layer.sort_by(|a, b| a.0.total_cmp(&b.0)));
    // The width is somewhat larger than the widest layer, so that items of other layers can be placed near their predecessors.
    let room = (widest + widest / 2).min(WIDTH);
    layers.iter().map(|layer| spread(scene, layer, room, scale)).collect()
}

/// Returns the minimum width of a layer.
fn packed(scene: &Scene, layer: &[(f64, Thing)]) -> usize {
    layer.iter().map(|(_, thing)| width(&label(scene, *thing)) + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Assigns a column to each item: in order, and as close as possible to the position in the layout.
fn spread(scene: &Scene, layer: &[(f64, Thing)], room: usize, scale: f64) -> Option<Vec<Placed>> {
    let mut left_over = packed(scene, layer);
    let mut end = 0;
    let placed = layer.iter().map(|&(place, thing)| {
        let label = label(scene, thing);
        let width = width(&label);
        let wanted = ((place + 0.5) / scale * room as f64) as usize;
        let last = room.checked_sub(left_over)?;
        let left = wanted.saturating_sub(width / 2).clamp(end, last.max(end));
        left_over = left_over.saturating_sub(width + GAP);
        end = left + width + GAP;
        Some(Placed { thing, label, left, width })
    });
    placed.collect()
}

fn label(scene: &Scene, thing: Thing) -> String {
    let Thing::Task(task) = thing else { return String::new() };
    printable(&labels::label(scene, task, usize::MAX))
}

/// Returns the width of a box with this label; 1 for a line, which has no label.
fn width(label: &str) -> usize {
    if label.is_empty() { 1 } else { label.chars().count() + 4 }
}

fn draw_thing(scene: &Scene, placed: &Placed, top: usize, canvas: &mut Canvas) {
    let Thing::Task(task) = placed.thing else {
        (top..top + BOX).for_each(|row| canvas.put(row, placed.left, '│'));
        return;
    };
    let line = "─".repeat(placed.width - 2);
    canvas.write(top, placed.left, &format!("┌{line}┐"));
    canvas.write(top + 1, placed.left, &format!("│ {} │", placed.label));
    canvas.write(top + 2, placed.left, &format!("└{line}┘"));
    if let Some(state) = scene.state(task) {
        canvas.colour(top..top + BOX, placed.left..placed.left + placed.width, state);
    }
}

/// Returns the wires from one layer to the next, grouped by their start.
fn wires<'p>(
    layout: &layout::Layout,
    graph: &Graph,
    layer: usize,
    (above, shift): (&'p [Placed], isize),
    below: &'p [Placed],
) -> Vec<Wire> {
    let find = |things: &'p [Placed], thing: Thing| things.iter().find(|placed| placed.thing == thing);
    let mut wires: Vec<Wire> = Vec::new();
    for edge in &layout.edges {
        let (first, last) = (graph.layer(edge.from) as usize, graph.layer(edge.to) as usize);
        if !(first..last).contains(&layer) {
            continue;
        }
        let from = if first == layer { Thing::Task(edge.from) } else { Thing::Bend(edge.from) };
        let to = if last == layer + 1 { Thing::Task(edge.to) } else { Thing::Bend(edge.from) };
        let (Some(from), Some(to)) = (find(above, from), find(below, to)) else { continue };
        let (from, end) = (from.port(shift), to.middle());
        let arrives = last == layer + 1;
        match wires.iter_mut().find(|wire| wire.from == from) {
            Some(wire) if wire.to.contains(&(end, arrives)) => {}
            Some(wire) => wire.to.push((end, arrives)),
            None => wires.push(Wire { from, to: vec![(end, arrives)] }),
        }
    }
    wires
}
