//! Faults of a configuration file, with position and remedy.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use milepost_core::secrets::Secrets;
use serde::Serialize;

/// The faults found so far, by their byte position in the text.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<Found>,
    /// Values of environment variables, which are not reported.
    hidden: Secrets,
}

#[derive(Debug)]
struct Found {
    /// The byte position.
    at: usize,
    kind: Kind,
    what: String,
    remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Value,
    /// A section or key that occurs twice. Such faults are kept by [`Faults::forget`].
    Repeated,
    UnknownKey,
}

impl Faults {
    pub(crate) fn add(&mut self, at: usize, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(at, Kind::Value, what.into(), remedy.into());
    }

    pub(crate) fn add_repeated(&mut self, at: usize, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(at, Kind::Repeated, what.into(), remedy.into());
    }

    pub(crate) fn add_unknown_key(&mut self, at: usize, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(at, Kind::UnknownKey, what.into(), remedy.into());
    }

    fn push(&mut self, at: usize, kind: Kind, what: String, remedy: String) {
        self.found.push(Found { at, kind, what, remedy });
    }

    /// Adds the unknown keys among other faults.
    pub(crate) fn add_unknown_keys_of(&mut self, others: Self) {
        self.found.extend(others.found.into_iter().filter(|fault| fault.kind == Kind::UnknownKey));
    }

    /// Keeps only the faults at this key of a table; a longer key, or one behind a dot, is another one.
    pub(crate) fn keep_key(&mut self, text: &str, key: &str) {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_at = |at: usize| {
            let Some((before, after)) = text.split_at_checked(at) else { return false };
            let rest = after.trim_start_matches(['"', '\'']).strip_prefix(key);
            !before.trim_end().ends_with('.') && rest.is_some_and(|rest| !rest.starts_with(is_bare))
        };
        self.found.retain(|fault| is_at(fault.at));
    }

    /// Returns whether there is a fault at this position.
    pub(crate) fn has_one_at(&self, at: usize) -> bool {
        self.found.iter().any(|fault| fault.at == at)
    }

    /// Hides these values in all faults.
    pub(crate) fn hide(&mut self, values: impl IntoIterator<Item = String>) {
        self.hidden = self.hidden.and(values);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Drops the faults within repeated sections: most of them result from mixing the two sections.
    pub(crate) fn forget(&mut self, sections: &[Range<usize>]) {
        self.found.retain(|fault| {
            fault.kind == Kind::Repeated || !sections.iter().any(|section| section.contains(&fault.at))
        });
    }

    /// Returns the faults with lines and columns, in the order of the text.
    pub(crate) fn placed(&self, text: &str) -> Vec<Fault> {
        let mut found: Vec<&Found> = self.found.iter().collect();
        found.sort_by_key(|fault| fault.at);
        let lines = Lines::of(text);
        let place = |fault: &Found| {
            let (line, column) = lines.place(fault.at);
            let what = self.hidden.hide(fault.what.clone());
            Fault { line, column, what, remedy: fault.remedy.clone() }
        };
        let mut faults: Vec<Fault> = found.into_iter().map(place).collect();
        faults.dedup();
        faults
    }
}

/// The lines of a text, for the positions of many bytes.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The byte at which each line begins.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Returns the line and the column of a byte, both counted from 1; columns count characters.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|&start| start <= at);
        (line, self.text[self.starts[line - 1]..at].chars().count() + 1)
    }
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The problem.
    pub(crate) what: String,
    /// The remedy.
    pub(crate) remedy: String,
}

/// The error for a file with faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) file: String,
    pub(crate) faults: Vec<Fault>,
}

impl Faulty {
    pub(crate) fn new(path: &Path, faults: Vec<Fault>) -> Self {
        Self { file: path.display().to_string(), faults }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.len() {
            1 => write!(f, "the configuration has a fault")?,
            count => write!(f, "the configuration has {count} faults")?,
        }
        for Fault { line, column, what, remedy } in &self.faults {
            write!(f, "\n{}:{line}:{column}: {what}\n  {remedy}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faulty {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_from_one() {
        let text = "a = 1\né = \"ü\" # x\n";
        let lines = Lines::of(text);
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(text.find('#').unwrap()), (2, 9));
        assert_eq!(lines.place(text.len()), (3, 1));
    }
}
