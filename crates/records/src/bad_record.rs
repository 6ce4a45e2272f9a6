//! Errors in a file, with their position.

use std::fmt;

/// An error at a byte offset of a record.
#[derive(Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The offset in the record, in bytes.
    pub offset: usize,
    /// The fault.
    pub why: String,
}

impl Flaw {
    /// Creates an error.
    pub fn new(offset: usize, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { offset, why }
    }
}

/// A bad record, with the position of its error as an editor shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The line, counted from 1.
    pub line: u64,
    /// The column, counted from 1 in characters.
    pub column: u64,
    /// The fault.
    pub why: String,
    /// The bytes of the file that the record covers.
    pub bytes: std::ops::Range<u64>,
    /// The number of lines of the record.
    pub lines: u64,
}

impl BadRecord {
    /// Describes an error in the record `text`, which begins in `line` and covers `bytes` of the file.
    pub fn new(text: &[u8], line: u64, bytes: std::ops::Range<u64>, flaw: Flaw) -> Self {
        let before = &text[..flaw.offset.min(text.len())];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let lines_before = before.iter().filter(|&&b| b == b'\n').count() as u64;
        let covered = &text[..text.len().min(usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX))];
        let lines = covered.split_inclusive(|&b| b == b'\n').count().max(1) as u64;
        let characters_before = String::from_utf8_lossy(&before[line_start..]).chars().count() as u64;
        Self { line: line + lines_before, column: characters_before + 1, why: flaw.why, bytes, lines }
    }
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_go_on_inside_a_record() {
        let place = |text: &str, offset| {
            let bad = BadRecord::new(text.as_bytes(), 7, 0..0, Flaw::new(offset, "x"));
            (bad.line, bad.column)
        };
        assert_eq!(place("abc", 0), (7, 1));
        assert_eq!(place("é,x", 3), (7, 3));
        assert_eq!(place("a\nbc", 3), (8, 2));
        assert_eq!(place("a", 99), (7, 2));
        let lines = |text: &str, bytes| BadRecord::new(text.as_bytes(), 1, 0..bytes, Flaw::new(0, "x")).lines;
        assert_eq!((lines("a\nb\nc", 5), lines("a\nb\nc\n", 6), lines("a\nb", 2)), (3, 3, 1));
    }
}
