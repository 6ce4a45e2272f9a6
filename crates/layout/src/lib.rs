//! Layout of a graph of tasks: layer by layer, with few crossings.

mod picture;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use milepost_core::dag::graph::Graph;
use rust_sugiyama::configure::{Config, CrossingMinimization, RankingType};

pub use self::picture::{BOX_HEIGHT, BOX_PADDING, CHAR_WIDTH, Line, MARGIN, Picture, TaskBox};

/// Maximum number of points (tasks and bends of edges), and of edges between adjacent layers.
const POINTS_MAX: usize = 20_000;

/// The error for a graph that is too large to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph is too large to be drawn: it has more than {POINTS_MAX} tasks or edges")
    }
}

impl std::error::Error for TooMuch {}

/// The layout of a graph.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The position of each task within its layer, by task number.
    pub places: Vec<f64>,
    /// The edges.
    pub edges: Vec<Edge>,
}

/// An edge with its bends.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The predecessor.
    pub from: u32,
    /// The successor.
    pub to: u32,
    /// Its positions in the layers between the two tasks, in order.
    pub bends: Vec<f64>,
}

/// Computes the layout of a graph. Adjacent positions differ by about one.
///
/// # Errors
/// [`TooMuch`] when the computation would take long; nobody could read such a graph.
pub fn of(graph: &Graph) -> Result<Layout, TooMuch> {
    let tasks = u32::try_from(graph.len()).unwrap_or(u32::MAX);
    let all = (0..tasks).flat_map(|from| graph.successors(from).iter().map(move |&to| (from, to)));
    // An edge gets a point in each layer that it passes, so that space is reserved for it. Edges from the same task share these
    // points.
    let (mut passing, mut short, mut edges) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    for (from, to) in all {
        let mut way = vec![from];
        for layer in graph.layer(from) + 1..graph.layer(to) {
            let next = tasks + u32::try_from(passing.len()).unwrap_or(u32::MAX);
            way.push(*passing.entry((from, layer)).or_insert(next));
        }
        way.push(to);
        short.extend(way.windows(2).map(|step| (step[0], step[1])));
        edges.push((from, to, way));
        let points = graph.len() + passing.len();
        if points.max(short.len()) > POINTS_MAX {
            return Err(TooMuch);
        }
    }
    let points = tasks + u32::try_from(passing.len()).unwrap_or(u32::MAX);
    let short: Vec<(u32, u32)> = short.into_iter().collect();
    let places = places(points, &short);
    let place = |point: &u32| places.get(point).copied().unwrap_or_default();
    Ok(Layout {
        places: (0..tasks).map(|task| place(&task)).collect(),
        edges: edges
            .into_iter()
            .map(|(from, to, way)| Edge {
                from,
                to,
                bends: way[1..way.len() - 1].iter().map(place).collect(),
            })
            .collect(),
    })
}

/// Computes the position of each point in its layer. Connected components are placed side by side.
fn places(points: u32, edges: &[(u32, u32)]) -> HashMap<u32, f64> {
    let points: Vec<(u32, (f64, f64))> = (0..points).map(|point| (point, (1.0, 1.0))).collect();
    // Transposing neighbors would take 12 s instead of 20 ms for 1,000 tasks, and avoid only a few crossings.
    let config = Config {
        vertex_spacing: 0.0,
        ranking_type: RankingType::Up,
        transpose: false,
        c_minimization: CrossingMinimization::Barycenter,
        ..Config::default()
    };
    let mut places = HashMap::new();
    let mut start = 0.0;
    for (points, ..) in rust_sugiyama::from_vertices_and_edges(&points, edges, &config) {
        let of = points.iter().map(|&(_, (place, _))| place);
        let (min, max) = of.fold((f64::MAX, f64::MIN), |(min, max), place| (min.min(place), max.max(place)));
        for (point, (place, _)) in points {
            places.insert(u32::try_from(point).unwrap_or(u32::MAX), start + place - min);
        }
        start += max - min + 1.0;
    }
    places
}
