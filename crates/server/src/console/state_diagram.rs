//! The state diagram of a job, with its past transitions and its current state.

use std::fmt::Write as _;

use milepost_core::history::HistoryEntry;
use milepost_core::state::JobState;

/// Half the width and half the height of a box.
const BOX: (i32, i32) = (52, 15);

/// Draws the diagram. It contains no text except names of states, so nothing needs to be escaped.
pub(super) fn draw(state: JobState, history: &[HistoryEntry]) -> String {
    let was = |state: JobState| history.iter().any(|entry| entry.to == state);
    let went =
        |from: JobState, to: JobState| history.iter().any(|entry| entry.from == Some(from) && entry.to == to);
    let mut svg = String::from(
        "<svg class=\"machine\" viewBox=\"0 0 860 200\" role=\"img\" aria-label=\"State transitions\">\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerUnits=\"userSpaceOnUse\" markerWidth=\"9\" markerHeight=\"9\" \
         orient=\"auto\"><path d=\"M1 1L7 4L1 7\"/></marker></defs>",
    );
    for (from, to, path) in WAYS {
        let class = if went(*from, *to) { " class=\"way\"" } else { "" };
        let _ = write!(svg, "<path{class} d=\"{path}\" marker-end=\"url(#tip)\"/>");
    }
    for &known in JobState::ALL {
        let (x, y) = place(known);
        let mut class = String::new();
        if was(known) {
            class.push_str("was ");
        }
        if known == state {
            class.push_str(match state {
                JobState::Failed | JobState::Aborted | JobState::Canceled => "now bad",
                JobState::Succeeded => "now good",
                _ => "now",
            });
        }
        let _ = write!(
            svg,
            "<g class=\"{class}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <text x=\"{x}\" y=\"{}\">{known}</text></g>",
            x - BOX.0,
            y - BOX.1,
            2 * BOX.0,
            2 * BOX.1,
            y + 4,
        );
    }
    svg.push_str("</svg>");
    svg
}

const fn place(state: JobState) -> (i32, i32) {
    match state {
        JobState::Blocked => (70, 100),
        JobState::Pending => (250, 100),
        JobState::Running => (430, 100),
        JobState::RetryWait => (340, 30),
        JobState::Succeeded => (620, 100),
        JobState::Failed => (620, 30),
        JobState::Aborted => (430, 170),
        JobState::Canceled => (620, 170),
        JobState::Skipped => (250, 170),
    }
}

/// The usual transitions. Most of those by operators to `canceled` and `skipped` are omitted to keep the diagram readable.
const WAYS: &[(JobState, JobState, &str)] = &[
    (JobState::Blocked, JobState::Pending, "M122 100H196"),
    (JobState::Pending, JobState::Running, "M302 95H376"),
    (JobState::Running, JobState::Pending, "M378 106H304"),
    (JobState::Running, JobState::RetryWait, "M415 85C405 55 400 40 394 34"),
    (JobState::RetryWait, JobState::Running, "M372 45C385 60 395 72 405 83"),
    (JobState::RetryWait, JobState::Pending, "M308 45C290 60 275 72 266 83"),
    (JobState::Running, JobState::Succeeded, "M482 100H566"),
    (JobState::Running, JobState::Failed, "M470 85C510 50 530 34 566 31"),
    (JobState::Failed, JobState::Pending, "M600 15C520 -8 240 -12 236 83"),
    (JobState::Running, JobState::Aborted, "M436 115V153"),
    (JobState::Aborted, JobState::Pending, "M378 165C330 160 290 145 268 117"),
    (JobState::Running, JobState::Canceled, "M475 115C520 140 540 160 566 167"),
    (JobState::Pending, JobState::Skipped, "M250 115V153"),
    (JobState::Pending, JobState::Canceled, "M290 115C380 145 480 192 566 178"),
    (JobState::Aborted, JobState::Canceled, "M482 170H566"),
];
