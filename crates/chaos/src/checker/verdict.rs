//! Verdicts about promises.

use std::fmt;

/// The number of violations of a promise that are described. All are counted.
pub const VIOLATIONS_MAX: usize = 20;

/// The verdict about one promise.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Its number in `docs/GUARANTEES.md`.
    pub number: u8,
    /// The promise in short.
    pub promise: &'static str,
    /// The number of facts that were checked. 0: the record says nothing about the promise.
    pub checked: u64,
    /// The number of violations.
    pub violated: u64,
    /// Descriptions of the first [`VIOLATIONS_MAX`] violations.
    pub violations: Vec<String>,
}

impl Verdict {
    /// Returns whether the promise was checked and not violated.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.checked > 0 && self.violated == 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, promise, checked, violated, violations } = self;
        let verdict = match (checked, violated) {
            (_, 1..) => "BROKEN",
            (0, 0) => "not checked",
            _ => "kept",
        };
        write!(f, "{number:>2}  {verdict:<11}  {promise} ({checked} checked)")?;
        for violation in violations {
            write!(f, "\n      {violation}")?;
        }
        if *violated > violations.len() as u64 {
            write!(f, "\n      and {} more", violated - violations.len() as u64)?;
        }
        Ok(())
    }
}

/// What a check has found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    checked: u64,
    violated: u64,
    violations: Vec<String>,
}

impl Findings {
    /// Counts one checked fact. `violation` describes it if it does not hold.
    pub(super) fn check(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        self.checked += 1;
        if holds {
            return;
        }
        self.violated += 1;
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation());
        }
    }

    pub(super) fn verdict(self, number: u8, promise: &'static str) -> Verdict {
        let Self { checked, violated, violations } = self;
        Verdict { number, promise, checked, violated, violations }
    }
}
