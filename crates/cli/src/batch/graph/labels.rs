//! Marks and labels of tasks, and the legend.

use milepost_core::dag::state::TaskState;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Scene;

/// The maximum width of a line.
pub(super) const WIDTH: usize = 80;

/// Returns the mark of a task's state for output without colours.
pub(super) const fn mark(state: TaskState) -> char {
    match state {
        TaskState::Waiting => '·',
        TaskState::Due => '○',
        TaskState::Active => '▶',
        TaskState::Failed => '✗',
        TaskState::Aborted => '■',
        TaskState::Succeeded => '✓',
        TaskState::Skipped => '↷',
        TaskState::Canceled => '⊘',
    }
}

/// Explains the marks that occur in the graph.
pub(super) fn legend(scene: &Scene) -> Option<String> {
    let states = scene.states.as_ref()?;
    let there = TaskState::ALL.iter().filter(|state| states.contains(state));
    Some(there.map(|&state| format!("{} {state}", mark(state))).collect::<Vec<_>>().join(" "))
}

/// Returns the label of a task: its mark, if it has a state, and its key, truncated to `key_width`.
pub(super) fn label(scene: &Scene, task: u32, key_width: usize) -> String {
    let key = cut(scene.dag.graph().key(task), key_width);
    scene.state(task).map_or_else(|| key.clone(), |state| format!("{} {key}", mark(state)))
}

/// Truncates a text to a number of columns; some characters take two.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 1;
    let fits = text.chars().take_while(|c| {
        taken += c.width().unwrap_or(0);
        taken <= columns
    });
    fits.chain(['…']).collect()
}
