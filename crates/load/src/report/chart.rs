//! A chart of lines over the seconds of a run, as coordinates of an SVG image.

use std::fmt::Write;
use std::time::Duration;

use crate::phases::Phases;

/// The size of the image: about the width of a phone, so that its text is readable there.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 190.0;
/// The distances of the plot from the borders of the image.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 24.0;
/// The largest number of labels of an axis.
const LABELS_MAX: f64 = 5.0;

/// The values of one line, one for each second. A missing value interrupts the line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Its class in the style sheet, which determines its color.
    pub(super) class: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

/// A line as drawn.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    /// The commands of an SVG path.
    pub(super) path: String,
    /// The largest value.
    pub(super) max: String,
}

/// A label of an axis.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) at: String,
    pub(super) text: String,
}

/// A chart.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) lines: Vec<Drawn>,
    pub(super) horizontal: Vec<Label>,
    pub(super) vertical: Vec<Label>,
    /// Where the disturbed phase begins, and its width.
    pub(super) shade: (String, String),
    /// Where processes were killed.
    pub(super) kills: Vec<String>,
}

impl Chart {
    pub(super) fn new(
        title: &'static str,
        unit: &'static str,
        lines: Vec<Line>,
        phases: Phases,
        kills: &[f64],
    ) -> Self {
        let seconds = lines.iter().map(|line| line.values.len()).max().unwrap_or_default().max(1);
        let values = lines.iter().flat_map(|line| &line.values).flatten();
        let max = values.copied().fold(0.0, f64::max);
        let (step_y, step_x) = (step(max), step(seconds as f64).max(1.0));
        let top = ((max / step_y).ceil() * step_y).max(step_y);
        let x = |second: f64| LEFT + second / seconds as f64 * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let labels = |step: f64, end: f64, at: &dyn Fn(f64) -> f64| {
            let count = (end / step + 1e-9).floor() as usize;
            let label = |index: usize| {
                let value = index as f64 * step;
                Label { at: coordinate(at(value)), text: number(value) }
            };
            (0..=count).map(label).collect()
        };
        let at = |time: Duration| x(time.as_secs_f64());
        Self {
            title,
            unit,
            horizontal: labels(step_y, top, &y),
            vertical: labels(step_x, seconds as f64, &x),
            shade: (coordinate(at(phases.begin())), coordinate(at(phases.end()) - at(phases.begin()))),
            kills: kills.iter().map(|second| coordinate(x(*second))).collect(),
            lines: lines.into_iter().map(|line| draw(&line, &x, &y)).collect(),
        }
    }
}

/// Draws a line through the middle of each second.
fn draw(line: &Line, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> Drawn {
    let (mut path, mut is_interrupted) = (String::new(), true);
    for (second, value) in line.values.iter().enumerate() {
        let Some(value) = value else {
            is_interrupted = true;
            continue;
        };
        // A line of no length, so that a single value is a dot.
        let (command, end) = if is_interrupted { ('M', "h0") } else { ('L', "") };
        let (x, y) = (coordinate(x(second as f64 + 0.5)), coordinate(y(*value)));
        // Writing to a string cannot fail.
        let _ = write!(path, "{command}{x} {y}{end}");
        is_interrupted = false;
    }
    let max = line.values.iter().flatten().copied().fold(0.0, f64::max);
    Drawn { name: line.name, class: line.class, path, max: number(max) }
}

/// Returns the distance of labels: 1, 2 or 5 times a power of ten.
fn step(max: f64) -> f64 {
    let rough = (max / LABELS_MAX).max(f64::MIN_POSITIVE);
    if max <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

fn coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// Formats a value with as many digits as its size needs.
fn number(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{}k", value / 1_000.0)
    } else if value >= 10.0 || value.fract().abs() < 1e-9 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_at_most_six_labels_with_round_numbers() {
        for (max, expected) in
            [(0.0, 1.0), (4.0, 1.0), (100.0, 20.0), (101.0, 50.0), (37.0, 10.0), (0.3, 0.1)]
        {
            assert!((step(max) - expected).abs() < 1e-9, "{max}: {}", step(max));
        }
    }

    #[test]
    fn a_missing_value_interrupts_the_line() {
        let line = Line { name: "p50", class: "first", values: vec![Some(1.0), None, Some(1.0), Some(0.0)] };
        let phases = Phases { length: Duration::from_secs(3) };
        let chart = Chart::new("Latency", "ms", vec![line], phases, &[]);
        let path = &chart.lines[0].path;
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
    }
}
