//! Migrations of a store's tables: which are missing, and which programs work with a store.
//!
//! During a rolling upgrade, programs of two versions work on one store. The newer one migrates it; each migration states the oldest
//! programs that work with it, so that these continue, and can be started again.

use crate::error::SchemaError;
use crate::hash::fnv1a;

/// A migration, which is embedded in the program and never edited after its release.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// A short name.
    pub name: &'static str,
    /// Its changes and their cost, for the operator who plans it.
    pub summary: &'static str,
    /// The oldest schema version whose programs work with a store that has it.
    pub compatible_from: i64,
    /// Its statements.
    pub sql: &'static str,
}

/// A migration that a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub version: i64,
    /// The fingerprint of its text.
    pub checksum: String,
    /// The oldest schema version whose programs work with it.
    pub compatible_from: i64,
}

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty store.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// What a migration would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationPlan {
    /// The version of the store; 0 for an empty one.
    pub found: i64,
    /// The version that this program needs.
    pub known: i64,
    /// The migrations that would be applied, in order, each with its version.
    pub steps: Vec<PlannedStep>,
    /// The oldest schema version whose programs work with the store afterwards.
    pub compatible_from: i64,
}

impl MigrationPlan {
    /// Refuses a newer store, even one that allows this program: what copies a store must know all of its tables.
    ///
    /// # Errors
    /// If the store is newer than this program.
    pub const fn knows_all(&self) -> Result<(), SchemaError> {
        let Self { found, known, .. } = *self;
        if found > known { Err(SchemaError::TooNew { found, known }) } else { Ok(()) }
    }
}

/// A migration that would be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its number.
    pub version: i64,
    /// Its name.
    pub name: &'static str,
    /// Its changes and their cost.
    pub summary: &'static str,
}

/// The migrations of a store, in order. The version of each is its position, from 1.
#[derive(Clone, Copy, Debug)]
pub struct Migrations(pub &'static [Migration]);

impl Migrations {
    /// Returns the schema version that this program needs.
    #[must_use]
    pub const fn known(self) -> i64 {
        self.0.len() as i64
    }

    /// Returns the migrations that a store of this version does not have, each with its version.
    pub fn missing(self, found: i64) -> impl Iterator<Item = (i64, &'static Migration)> {
        (1..).zip(self.0).filter(move |(version, _)| *version > found)
    }

    /// Returns the version of a store that has these migrations, in order; 0 if it has none.
    ///
    /// # Errors
    /// If a migration differs from that of this program or is missing, or a newer one does not allow this program.
    pub fn found(self, applied: &[Applied]) -> Result<i64, SchemaError> {
        let known = self.known();
        for Applied { version, checksum: found, .. } in applied.iter().filter(|its| its.version <= known) {
            let own = usize::try_from(version - 1).ok().and_then(|at| self.0.get(at));
            if own.is_none_or(|own| checksum(own.sql) != *found) {
                return Err(SchemaError::Altered { version: *version });
            }
        }
        let found = applied.last().map_or(0, |last| last.version);
        let missing =
            (1..=found.min(known)).find(|version| applied.iter().all(|its| its.version != *version));
        if let Some(version) = missing {
            return Err(SchemaError::Gap { version });
        }
        let refuses = |newer: &Applied| newer.version > known && newer.compatible_from > known;
        if applied.iter().any(refuses) { Err(SchemaError::TooNew { found, known }) } else { Ok(found) }
    }

    /// Refuses a store with which this program does not work.
    ///
    /// # Errors
    /// As [`found`](Self::found), and if the store has to be migrated first.
    pub fn check(self, applied: &[Applied]) -> Result<(), SchemaError> {
        let (found, known) = (self.found(applied)?, self.known());
        if found < known { Err(SchemaError::TooOld { found, known }) } else { Ok(()) }
    }

    /// Returns what a migration of a store that has these migrations would do.
    ///
    /// # Errors
    /// As [`found`](Self::found).
    pub fn plan(self, applied: &[Applied]) -> Result<MigrationPlan, SchemaError> {
        let found = self.found(applied)?;
        let steps = self.missing(found);
        let steps = steps.map(|(version, its)| PlannedStep { version, name: its.name, summary: its.summary });
        let before = applied.iter().map(|its| its.compatible_from);
        let compatible_from = self.missing(found).map(|(_, its)| its.compatible_from).chain(before).max();
        Ok(MigrationPlan {
            found,
            known: self.known(),
            steps: steps.collect(),
            compatible_from: compatible_from.unwrap_or_default(),
        })
    }
}

/// Returns a fingerprint of a migration's text.
#[must_use]
pub fn checksum(sql: &str) -> String {
    format!("{:016x}", fnv1a(sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The migrations of a program that knows three.
    const OURS: Migrations = Migrations(&[
        Migration { name: "first", summary: "creates", compatible_from: 1, sql: "one" },
        Migration { name: "second", summary: "breaks", compatible_from: 2, sql: "two" },
        Migration { name: "third", summary: "adds", compatible_from: 2, sql: "three" },
    ]);

    fn applied(version: i64, sql: &str, compatible_from: i64) -> Applied {
        Applied { version, checksum: checksum(sql), compatible_from }
    }

    fn ours() -> Vec<Applied> {
        vec![applied(1, "one", 1), applied(2, "two", 2), applied(3, "three", 2)]
    }

    #[test]
    fn a_store_with_all_migrations_fits() {
        assert_eq!(OURS.check(&ours()), Ok(()));
        let plan = OURS.plan(&ours()).unwrap();
        assert_eq!(plan.steps, []);
        assert_eq!(plan.knows_all(), Ok(()));
    }

    #[test]
    fn an_older_store_has_to_be_migrated_first() {
        let older = &ours()[..1];
        assert_eq!(OURS.check(older), Err(SchemaError::TooOld { found: 1, known: 3 }));
        let plan = OURS.plan(older).unwrap();
        assert_eq!((plan.found, plan.known, plan.compatible_from), (1, 3, 2));
        let steps: Vec<_> = plan.steps.iter().map(|step| (step.version, step.name)).collect();
        assert_eq!(steps, [(2, "second"), (3, "third")]);
    }

    #[test]
    fn a_newer_store_fits_if_every_newer_migration_allows_this_program() {
        let mut newer = ours();
        newer.extend([applied(4, "four", 3), applied(5, "five", 2)]);
        assert_eq!(OURS.check(&newer), Ok(()));
        let plan = OURS.plan(&newer).unwrap();
        assert_eq!(plan.steps, []);
        assert_eq!(plan.knows_all(), Err(SchemaError::TooNew { found: 5, known: 3 }));
        assert_eq!(OURS.found(&newer), Ok(5));
    }

    #[test]
    fn a_newer_store_is_refused_if_one_migration_does_not_allow_this_program() {
        let mut newer = ours();
        newer.extend([applied(4, "four", 4), applied(5, "five", 3)]);
        let refused = SchemaError::TooNew { found: 5, known: 3 };
        assert_eq!(OURS.check(&newer), Err(refused.clone()));
        assert_eq!(OURS.plan(&newer), Err(refused));
    }

    #[test]
    fn a_migration_with_another_text_is_refused_even_below_newer_ones() {
        let mut altered = ours();
        altered[1].checksum = "other".to_owned();
        altered.push(applied(4, "four", 1));
        assert_eq!(OURS.check(&altered), Err(SchemaError::Altered { version: 2 }));
    }

    #[test]
    fn a_migration_that_is_missing_below_newer_ones_is_named() {
        let mut gap = ours();
        gap.remove(1);
        assert_eq!(OURS.check(&gap), Err(SchemaError::Gap { version: 2 }));
        assert_eq!(OURS.plan(&gap), Err(SchemaError::Gap { version: 2 }));
        gap.push(applied(4, "four", 1));
        assert_eq!(OURS.check(&gap), Err(SchemaError::Gap { version: 2 }));
    }
}
