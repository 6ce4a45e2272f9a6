//! Tables on a terminal: without borders, fitted to its width, with colours only where they are wanted.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::state::JobState;

use crate::output::{self, printable};

/// The terminal width from which less important columns are shown.
pub const WIDE: u16 = 100;

/// A table under construction.
pub struct Listing {
    table: Table,
    colours: bool,
}

/// A column of a table.
pub struct Column {
    heading: &'static str,
    unbroken: bool,
}

impl Column {
    /// A column whose texts may wrap on a narrow terminal.
    pub const fn new(heading: &'static str) -> Self {
        Self { heading, unbroken: false }
    }

    /// A column whose texts do not wrap: because they are short, or are meant to be copied.
    pub const fn unbroken(heading: &'static str) -> Self {
        Self { heading, unbroken: true }
    }
}

impl From<&&'static str> for Column {
    fn from(heading: &&'static str) -> Self {
        Self::new(heading)
    }
}

impl Listing {
    /// Creates a table with these columns.
    pub fn new(columns: impl IntoIterator<Item = impl Into<Column>>) -> Self {
        let colours = output::colours_on(&std::io::stdout());
        let columns: Vec<Column> = columns.into_iter().map(Into::into).collect();
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        let headings: Vec<Cell> = columns.iter().map(|column| heading(column, colours)).collect();
        let mut header = Row::from(headings);
        header.max_height(1);
        table.set_header(header);
        for (place, column) in table.column_iter_mut().zip(&columns) {
            place.set_padding((0, 2));
            if column.unbroken {
                place.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        Self { table, colours }
    }

    /// Adds a row.
    pub fn row(&mut self, fields: impl IntoIterator<Item = Field>) {
        let colours = self.colours;
        let cells: Vec<Cell> = fields.into_iter().map(|field| field.cell(colours)).collect();
        self.table.add_row(cells);
    }

    /// Adds a row of one line; texts that do not fit the terminal are truncated.
    pub fn line(&mut self, fields: impl IntoIterator<Item = Field>) {
        self.row(fields);
        if let Some(row) = self.table.row_mut(self.table.row_count() - 1) {
            row.max_height(1);
        }
    }

    /// Adds a row of the fields that have a column: a single line, unless the terminal is wide.
    pub fn fit(&mut self, wide: bool, fields: impl IntoIterator<Item = Option<Field>>) {
        let fields = fields.into_iter().flatten();
        if wide { self.row(fields) } else { self.line(fields) }
    }

    /// Prints the table to stdout. Unless the terminal is wide, fields without a column are printed below each row.
    pub fn print_fit(
        &self,
        wide: bool,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> std::io::Result<()> {
        if wide { self.print() } else { self.print_with_texts(texts) }
    }

    /// Prints the table to stdout with a text below each row. Its rows must be [lines](Self::line).
    pub fn print_with_texts(&self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> std::io::Result<()> {
        let rows = self.table.trim_fmt();
        let mut rows = rows.lines();
        output::line(rows.next().unwrap_or_default())?;
        rows.zip(texts)
            .try_for_each(|(row, text)| output::line(format_args!("{row}\n{}", below(text.as_ref()))))
    }

    /// Prints the table to stdout.
    pub fn print(&self) -> std::io::Result<()> {
        // `trim_fmt` removes trailing blanks.
        output::line(self.table.trim_fmt())
    }
}

/// Returns the width of the terminal in columns; `None` if stdout is not a terminal.
pub fn terminal_columns() -> Option<u16> {
    Table::new().width()
}

/// Indents a text and wraps it to the width of the terminal.
fn below(text: &str) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).add_row([printable(text)]);
    if let Some(place) = table.column_mut(0) {
        place.set_padding((4, 0));
    }
    table.trim_fmt()
}

/// A cell of a table.
pub struct Field {
    text: String,
    colour: Option<Color>,
}

impl Field {
    /// A text in the default colour.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self { text: printable(text.as_ref()), colour: None }
    }

    /// An optional text.
    pub fn maybe(text: Option<impl AsRef<str>>) -> Self {
        text.map_or_else(|| Self::text(""), Self::text)
    }

    /// A highlighted text.
    pub fn warning(text: impl AsRef<str>) -> Self {
        Self { colour: Some(Color::Yellow), ..Self::text(text) }
    }

    /// The result of a check.
    pub fn mark(passed: bool) -> Self {
        let (text, colour) = if passed { ("✓", Color::Green) } else { ("✗", Color::Red) };
        Self { colour: Some(colour), ..Self::text(text) }
    }

    /// A job state in its colour.
    pub fn state(state: JobState) -> Self {
        Self { colour: state_colour(state), ..Self::text(state.as_str()) }
    }

    /// A text about a job state, in the colour of the state.
    pub fn state_as(state: JobState, words: impl AsRef<str>) -> Self {
        Self { colour: state_colour(state), ..Self::text(words) }
    }

    /// The state of a task in its colour.
    pub fn task_state(state: TaskState) -> Self {
        let colour = match state {
            TaskState::Active => Some(Color::Cyan),
            TaskState::Aborted => Some(Color::Yellow),
            TaskState::Failed => Some(Color::Red),
            TaskState::Succeeded => Some(Color::Green),
            TaskState::Waiting | TaskState::Due | TaskState::Skipped | TaskState::Canceled => None,
        };
        Self { colour, ..Self::text(state.as_str()) }
    }

    /// The state of a batch in its colour.
    pub fn batch_state(state: BatchState) -> Self {
        let colour = match state {
            BatchState::Running => Some(Color::Cyan),
            BatchState::Aborted => Some(Color::Yellow),
            BatchState::Failed => Some(Color::Red),
            BatchState::Done => Some(Color::Green),
            BatchState::Canceled => None,
        };
        Self { colour, ..Self::text(state.as_str()) }
    }

    fn cell(self, colours: bool) -> Cell {
        let cell = Cell::new(self.text);
        match self.colour {
            Some(colour) if colours => cell.fg(colour),
            _ => cell,
        }
    }
}

fn heading(column: &Column, colours: bool) -> Cell {
    let cell = Cell::new(column.heading);
    if colours { cell.add_attribute(Attribute::Bold) } else { cell }
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
