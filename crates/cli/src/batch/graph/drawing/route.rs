//! Routing of lines between two layers. A line goes down from its start, along its own horizontal track, and down to its ends.

use std::collections::HashMap;

use super::canvas::Canvas;

/// All lines from one item to the layer below.
pub(super) struct Wire {
    /// The start column.
    pub(super) from: usize,
    /// The end columns, and whether the line ends there (true) or continues to a later layer.
    pub(super) to: Vec<(usize, bool)>,
}

impl Wire {
    /// Returns the range of columns on the horizontal track; `None` if the wire is only vertical.
    fn span(&self) -> Option<(usize, usize)> {
        let ends = || self.to.iter().map(|(column, _)| *column).chain([self.from]);
        let (min, max) = (ends().min()?, ends().max()?);
        (min < max).then_some((min, max))
    }

    fn leads_to(&self, column: usize) -> bool {
        self.to.iter().any(|(to, _)| *to == column)
    }

    fn meets(&self, column: usize) -> bool {
        self.from == column || self.leads_to(column)
    }
}

/// The line segments in a cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    up: bool,
    down: bool,
    left: bool,
    right: bool,
    /// Whether the horizontal and the vertical line are connected.
    joined: bool,
}

impl Cell {
    const fn glyph(self) -> char {
        // A line that is only crossed is drawn behind the vertical one.
        if (self.up || self.down) && (self.left || self.right) && !self.joined {
            return '│';
        }
        match (self.up, self.down, self.left, self.right) {
            (true, true, true, true) => '┼',
            (true, true, true, false) => '┤',
            (true, true, false, true) => '├',
            (true, false, true, true) => '┴',
            (false, true, true, true) => '┬',
            (true, false, true, false) => '┘',
            (true, false, false, true) => '└',
            (false, true, true, false) => '┐',
            (false, true, false, true) => '┌',
            (false, false, _, _) => '─',
            (_, _, false, false) => '│',
        }
    }
}

/// Draws the wires from this row on and returns the number of rows; `None` if two wires would be indistinguishable.
pub(super) fn draw(wires: &[Wire], top: usize, canvas: &mut Canvas) -> Option<usize> {
    let tracks = tracks(wires)?;
    let rows = tracks.iter().flatten().map(|track| track + 1).max().unwrap_or(0);
    let mut cells: HashMap<(usize, usize), Cell> = HashMap::new();
    let mut down = |column: usize, from: usize, to: usize| {
        for row in from..to {
            cells.entry((row, column)).or_default().down = true;
            cells.entry((row + 1, column)).or_default().up = true;
        }
    };
    for (wire, track) in wires.iter().zip(&tracks) {
        let track = track.unwrap_or(0);
        down(wire.from, 0, track);
        wire.to.iter().for_each(|&(column, _)| down(column, track, rows));
    }
    // The first track is directly below the start of the wires.
    wires.iter().for_each(|wire| cells.entry((0, wire.from)).or_default().up = true);
    for (wire, track) in wires.iter().zip(&tracks) {
        let (Some((min, max)), Some(track)) = (wire.span(), *track) else { continue };
        for column in min..=max {
            let cell = cells.entry((track, column)).or_default();
            cell.left |= column > min;
            cell.right |= column < max;
            cell.joined |= wire.meets(column);
        }
    }
    for (&(row, column), cell) in cells.iter().filter(|((row, _), _)| *row < rows) {
        canvas.put(top + row, column, cell.glyph());
    }
    for wire in wires {
        for &(column, arrives) in &wire.to {
            canvas.put(top + rows, column, if arrives { '▼' } else { '│' });
        }
    }
    Some(rows + 1)
}

/// Assigns a track to each wire with a horizontal part, so that no two overlap. A wire that starts in a column has a track above those of
/// wires that end in that column, because below its track the column belongs to them.
fn tracks(wires: &[Wire]) -> Option<Vec<Option<usize>>> {
    let mut tracks: Vec<Option<usize>> = vec![None; wires.len()];
    let mut open: Vec<usize> = (0..wires.len()).filter(|&wire| wires[wire].span().is_some()).collect();
    while !open.is_empty() {
        let waits =
            |wire: usize| open.iter().any(|&other| other != wire && wires[wire].leads_to(wires[other].from));
        let next = open.iter().position(|&wire| !waits(wire))?;
        let wire = open.remove(next);
        tracks[wire] = Some(free_track(wires, &tracks, wire));
    }
    Some(tracks)
}

/// Returns the first free track below the tracks of wires that must be above.
fn free_track(wires: &[Wire], tracks: &[Option<usize>], wire: usize) -> usize {
    let others = || wires.iter().zip(tracks).filter_map(|(other, track)| Some((other, (*track)?)));
    let above = others().filter(|(other, _)| wires[wire].leads_to(other.from));
    let lowest = above.map(|(_, track)| track + 1).max().unwrap_or(0);
    let in_the_way = |track: usize| {
        others().any(|(other, taken)| {
            let apart = match (wires[wire].span(), other.span()) {
                (Some((min, max)), Some((other_min, other_max))) => max < other_min || other_max < min,
                _ => true,
            };
            taken == track && !apart
        })
    };
    (lowest..).find(|&track| !in_the_way(track)).unwrap_or(lowest)
}
