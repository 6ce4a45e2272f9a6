//! Tables for people: no borders, fitting the terminal, colours only where they are wanted.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table};
use milepost_core::state::JobState;

use crate::output::{self, printable};

/// A listing in the making.
pub(crate) struct Listing {
    table: Table,
    colours: bool,
}

impl Listing {
    /// A listing with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let colours = output::colours_on(&std::io::stdout());
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let bold = |heading: &&str| {
            let cell = Cell::new(heading);
            if colours {
                cell.add_attribute(Attribute::Bold)
            } else {
                cell
            }
        };
        table.set_header(headings.iter().map(bold));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table, colours }
    }

    /// The listing with a column that is never broken, such as one of ids that people copy.
    pub(crate) fn unbroken(mut self, column: usize) -> Self {
        if let Some(column) = self.table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        self
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Field; N]) {
        let colours = self.colours;
        self.table.add_row(cells.map(|field| field.cell(colours)));
    }

    /// Prints the listing as the answer.
    pub(crate) fn print(&self) -> std::io::Result<()> {
        // trim_fmt leaves no blanks at the ends of lines.
        output::line(self.table.trim_fmt())
    }
}

/// What stands in one place of a listing.
pub(crate) struct Field {
    text: String,
    colour: Option<Color>,
}

impl Field {
    /// Text in the terminal's own colour.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self {
            text: printable(text.as_ref()),
            colour: None,
        }
    }

    /// Text that may be missing.
    pub(crate) fn maybe(text: Option<impl AsRef<str>>) -> Self {
        text.map_or_else(|| Self::text(""), Self::text)
    }

    /// Text to be noticed.
    pub(crate) fn warning(text: impl AsRef<str>) -> Self {
        Self {
            colour: Some(Color::Yellow),
            ..Self::text(text)
        }
    }

    /// A state in its colour.
    pub(crate) fn state(state: JobState) -> Self {
        Self {
            colour: state_colour(state),
            ..Self::text(state.as_str())
        }
    }

    fn cell(self, colours: bool) -> Cell {
        let cell = Cell::new(self.text);
        match self.colour {
            Some(colour) if colours => cell.fg(colour),
            _ => cell,
        }
    }
}

const fn state_colour(state: JobState) -> Option<Color> {
    match state {
        JobState::Running => Some(Color::Cyan),
        JobState::RetryWait | JobState::Aborted => Some(Color::Yellow),
        JobState::Failed => Some(Color::Red),
        JobState::Succeeded => Some(Color::Green),
        JobState::Blocked | JobState::Pending | JobState::Canceled | JobState::Skipped => None,
    }
}
