//! A grid of characters with colours.

use std::fmt;
use std::ops::Range;

use milepost_cli_support::output;
use milepost_core::dag::state::TaskState;

/// A grid that grows when it is written to.
#[derive(Default)]
pub(super) struct Canvas {
    rows: Vec<Vec<(char, Option<TaskState>)>>,
}

impl Canvas {
    pub(super) fn put(&mut self, row: usize, column: usize, c: char) {
        self.cell(row, column).0 = c;
    }

    pub(super) fn write(&mut self, row: usize, column: usize, text: &str) {
        for (at, c) in (column..).zip(text.chars()) {
            self.put(row, at, c);
        }
    }

    /// Sets the colour of a rectangle to that of a state.
    pub(super) fn colour(&mut self, rows: Range<usize>, columns: Range<usize>, state: TaskState) {
        for row in rows {
            for column in columns.clone() {
                self.cell(row, column).1 = Some(state);
            }
        }
    }

    fn cell(&mut self, row: usize, column: usize) -> &mut (char, Option<TaskState>) {
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Vec::new());
        }
        let row = &mut self.rows[row];
        if row.len() <= column {
            row.resize(column + 1, (' ', None));
        }
        &mut row[column]
    }
}

impl fmt::Display for Canvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = output::colours_on(&std::io::stdout());
        for row in &self.rows {
            let mut now = "";
            for &(c, state) in row {
                let code = state.filter(|_| colours).map_or("", code);
                if code != now {
                    write!(f, "{}", if code.is_empty() { "\u{1b}[0m" } else { code })?;
                    now = code;
                }
                write!(f, "{c}")?;
            }
            writeln!(f, "{}", if now.is_empty() { "" } else { "\u{1b}[0m" })?;
        }
        Ok(())
    }
}

/// Returns the escape sequence for the colour of a state.
const fn code(state: TaskState) -> &'static str {
    match state {
        TaskState::Active => "\u{1b}[36m",
        TaskState::Aborted => "\u{1b}[33m",
        TaskState::Failed => "\u{1b}[31m",
        TaskState::Succeeded => "\u{1b}[32m",
        TaskState::Waiting | TaskState::Due | TaskState::Skipped | TaskState::Canceled => "",
    }
}
