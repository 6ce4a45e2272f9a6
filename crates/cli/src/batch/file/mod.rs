//! Files with the definition of a DAG, in TOML, YAML or JSON according to their file name.

mod parse;
mod places;
mod rest;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;

use self::parse::Unread;
use self::places::Positions;
use crate::input;

/// The format of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Yaml,
    Json,
}

impl Format {
    /// Returns the format for a file name.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Returns whether a text is the name of a definition file, and not that of a DAG.
pub(super) fn is_named(text: &str) -> bool {
    let path = Path::new(text);
    Format::of(path).is_some() && path.is_file()
}

/// Reads and checks a file.
///
/// # Errors
/// [`Faulty`] with all its faults; another error if it cannot be read at all.
pub(crate) fn read(path: &Path) -> Result<Dag> {
    let Some(format) = Format::of(path) else {
        bail!(
            "cannot determine the format of {}: the name of a definition must end in .toml, .yaml, .yml or .json",
            path.display()
        );
    };
    let text = input::read_text(path, input::DAG_BYTES_MAX)
        .with_context(|| format!("cannot read the definition {}", path.display()))?;
    Ok(check(format, &text).map_err(|faults| Faulty { file: path.to_owned(), faults })?)
}

/// Reads and checks the text of a file.
pub(crate) fn check(format: Format, text: &str) -> Result<Dag, Vec<Fault>> {
    let definition = parse(format, text)?;
    Dag::check(definition).map_err(|invalid| Positions::of(format, text).placed(&invalid))
}

fn parse(format: Format, text: &str) -> Result<Definition, Vec<Fault>> {
    let read = match format {
        Format::Toml => parse::toml(text),
        Format::Yaml => parse::yaml(text),
        Format::Json => parse::json(text),
    };
    read.map_err(|unread| match unread {
        Unread::Syntax(faults) => faults,
        Unread::Refused(first, path) => rest::with_the_rest(format, text, first, &path),
    })
}

/// A fault of a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line and column, both counted from 1.
    pub(crate) place: Option<(usize, usize)>,
    pub(crate) what: String,
}

/// A file without a valid DAG, with all its faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    file: PathBuf,
    faults: Vec<Fault>,
}

impl Faulty {
    /// Formats the faults, one per line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let file = self.file.display();
        self.faults.iter().map(move |fault| match fault.place {
            Some((line, column)) => format!("{file}:{line}:{column}: {}", fault.what),
            None => format!("{file}: {}", fault.what),
        })
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.len() {
            1 => write!(f, "the definition has a fault")?,
            count => write!(f, "the definition has {count} faults")?,
        }
        self.lines().try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl std::error::Error for Faulty {}

#[cfg(test)]
mod tests;
