//! Fuzz targets for the parsers and decoders of Milepost.
//!
//! A target is a function that parses an input and panics if a property does not hold. `tests/integration` runs each target over its
//! corpus and over a bounded number of mutations of it; `scripts/fuzz` runs them with an engine that follows the coverage of the code.

pub mod check;
pub mod targets;

/// A target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// Checks one input.
    ///
    /// # Panics
    /// A property does not hold for the input.
    pub run: fn(&[u8]),
}

/// Returns the target with this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    targets::ALL.iter().find(|target| target.name == name)
}
