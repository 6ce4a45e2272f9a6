//! Processing of a chunk's targets: applied in parts to isolate bad targets, or read for another process to apply.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::run::{BadTarget, Chunk, Parts, Target, TargetFailure};
use milepost_core::error::{Cause, StoreError};
use milepost_core::port::StoreResult;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::data_error::data_error;
use super::row::key;
use super::spec::Applied;
use super::sql::Statement;
use super::visit::Visit;
use crate::session::{Query, Session};

/// What is done with the targets of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Apply,
    /// They are returned, for another process to apply.
    Read,
}

/// The result of processing a part.
struct Part {
    targets: u32,
    /// The targets, if they were only read.
    rows: Vec<Target>,
    /// Number of source rows read; fewer than requested at the end of the source.
    read: u32,
    last: Option<Key>,
}

impl Part {
    /// Adds this part to the previous ones; returns the number of source rows it read.
    fn add_to(self, parts: &mut Parts, rows: &mut Vec<Target>) -> u32 {
        rows.extend(self.rows);
        parts.targets += self.targets;
        parts.cursor = self.last.or(parts.cursor.take());
        self.read
    }
}

/// The error of a bad target.
struct Bad {
    code: String,
    message: String,
}

/// The reason why a part was not applied.
enum Trouble {
    /// One of its targets cannot be applied.
    Data(Bad),
    Other(StoreError),
}

impl Visit {
    /// Applies up to `rows` targets.
    pub(super) async fn apply_parts(
        &mut self,
        cursor: Option<Key>,
        upper: &Key,
        rows: u32,
    ) -> StoreResult<Parts> {
        self.spec.applied.check_applies()?;
        self.parts(Deed::Apply, cursor, upper, rows).await.map(|(parts, _)| parts)
    }

    /// Reads the next targets, for another process to apply.
    pub(super) async fn read_targets(
        &mut self,
        cursor: Option<&Key>,
        upper: Option<&Key>,
        rows: u32,
    ) -> StoreResult<(Vec<Target>, Parts)> {
        let Some(upper) = upper else {
            return Ok((Vec::new(), Parts { exhausted: true, ..Parts::behind(cursor.cloned()) }));
        };
        let (parts, targets) = self.parts(Deed::Read, cursor.cloned(), upper, rows).await?;
        Ok((targets, parts))
    }

    /// Processes up to `rows` targets. A part that contains a bad target is rolled back and halved until the bad target is
    /// alone; the targets after it are processed in parts of growing size again.
    async fn parts(
        &mut self,
        deed: Deed,
        cursor: Option<Key>,
        upper: &Key,
        rows: u32,
    ) -> StoreResult<(Parts, Vec<Target>)> {
        let (mut parts, mut targets) = (Parts::behind(cursor), Vec::new());
        let (mut left, mut size) = (rows, rows);
        while left > 0 && !parts.exhausted && parts.failures.len() < Parts::FAILURES_MAX {
            let cursor = parts.cursor.as_ref();
            let page = if cursor.is_some() { &self.pages().next } else { &self.pages().first };
            let read = match self.try_part(deed, page.clone(), cursor, upper, size).await? {
                Ok(part) => {
                    parts.exhausted = part.read < size;
                    part.add_to(&mut parts, &mut targets)
                }
                Err(_) if size > 1 => {
                    size /= 2;
                    continue;
                }
                Err(_) => self.one(deed, &mut parts, &mut targets, upper).await?,
            };
            left = left.saturating_sub(read.max(1));
            size = size.saturating_mul(2).min(left);
        }
        Ok((parts, targets))
    }

    /// Processes the targets of the next key alone, or records them as failed. Returns the number of source rows this took.
    async fn one(
        &mut self,
        deed: Deed,
        parts: &mut Parts,
        targets: &mut Vec<Target>,
        upper: &Key,
    ) -> StoreResult<u32> {
        let cursor = parts.cursor.as_ref();
        let mut found = self.look(cursor, upper).await?;
        let Some(key) = found.last.clone() else {
            // The target was deleted in the meantime.
            parts.exhausted = true;
            return Ok(0);
        };
        // A page of one row also reads the row after it, to detect whether both have the same key. These statements read
        // only the one key, so that a bad row after it does not make it fail.
        let only = if cursor.is_some() { &self.pages().only_next } else { &self.pages().only_first };
        match self.try_part(deed, only.clone(), cursor, &key, 1).await? {
            Ok(part) => found.rows = part.rows,
            Err(Bad { code, message }) => {
                parts.failures.push(TargetFailure::new(key, code, message));
                parts.failed += found.targets;
            }
        }
        Ok(found.add_to(parts, targets))
    }

    /// Processes the targets that a statement selects, in a savepoint that is rolled back if one of them is bad.
    async fn try_part(
        &mut self,
        deed: Deed,
        statement: Statement,
        cursor: Option<&Key>,
        upper: &Key,
        size: u32,
    ) -> StoreResult<Result<Part, Bad>> {
        self.script("savepoint part").await?;
        let applied = match self.part(deed, &statement, cursor, upper, size).await {
            Ok(part) => Ok(part),
            Err(Trouble::Data(bad)) => Err(bad),
            Err(Trouble::Other(error)) => return Err(error),
        };
        self.script(if applied.is_ok() { "release part" } else { "rollback to part; release part" }).await?;
        Ok(applied)
    }

    async fn part(
        &mut self,
        deed: Deed,
        statement: &Statement,
        cursor: Option<&Key>,
        upper: &Key,
        size: u32,
    ) -> Result<Part, Trouble> {
        let query = self.bind(statement, cursor, Some(upper), size);
        if let (Deed::Apply, Applied::Sql(_)) = (deed, &self.spec.applied) {
            return self.summary(query, cursor).await;
        }
        let (targets, read, last) = self.read(query, cursor).await?;
        let count = u32::try_from(targets.len()).unwrap_or(u32::MAX);
        if deed == Deed::Read {
            return Ok(Part { targets: count, rows: targets, read, last });
        }
        let (run, origin) = (self.order.run, self.origin);
        let payload = self.order.payload.as_str();
        let chunk = Chunk { run, origin, payload, cursor, targets: &targets };
        if let (Applied::Handler(handler), false) = (self.spec.applied.clone(), targets.is_empty()) {
            let handled = handler.apply(&chunk, &mut self.connection).await;
            handled.map_err(|cause| self.blame(cause))?;
        }
        Ok(Part { targets: count, rows: Vec::new(), read, last })
    }

    /// Reads the targets of the next key without applying them.
    async fn look(&mut self, cursor: Option<&Key>, upper: &Key) -> StoreResult<Part> {
        let pages = self.pages();
        let statement = if cursor.is_some() { &pages.look_next } else { &pages.look_first };
        let query = self.bind(statement, cursor, Some(upper), 1);
        self.summary(query, cursor).await.map_err(unreadable)
    }

    async fn summary(&mut self, query: Query, cursor: Option<&Key>) -> Result<Part, Trouble> {
        let row = Session::lasting(&mut self.connection).row(query).await;
        let row = row.and_then(|row| row.ok_or(sqlx::Error::RowNotFound)).map_err(|e| self.trouble(e))?;
        let read = |row: &PgRow| {
            let rows = |column: &str| -> Result<u32, sqlx::Error> {
                Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
            };
            let (targets, read, last) = (rows("targets")?, rows("read")?, key(row, "key")?);
            let part = Part { targets, rows: Vec::new(), read, last };
            Ok::<_, sqlx::Error>((part, row.try_get::<Option<bool>, _>("moved")?, key(row, "first")?))
        };
        let (part, moved, first) = read(&row).map_err(|e| Trouble::Other(self.fail(e)))?;
        if moved == Some(false) { Err(stands(cursor, first.as_ref())) } else { Ok(part) }
    }

    async fn read(
        &mut self,
        query: Query,
        cursor: Option<&Key>,
    ) -> Result<(Vec<Target>, u32, Option<Key>), Trouble> {
        let rows = Session::lasting(&mut self.connection).rows(query).await.map_err(|e| self.trouble(e))?;
        let read = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let target = |row: &PgRow| -> Result<_, sqlx::Error> {
            let target = row.try_get::<Option<String>, _>("target")?;
            Ok((target, key(row, "key")?, key(row, "place")?, row.try_get::<bool, _>("moved")?))
        };
        let mut targets = Vec::with_capacity(rows.len());
        let mut last = None;
        for row in &rows {
            let (row, key, place, moved) = target(row).map_err(|e| Trouble::Other(self.fail(e)))?;
            if !moved {
                return Err(stands(cursor, key.as_ref()));
            }
            if let (Some(row), Some(key)) = (row, key) {
                targets.push(Target { key, row });
            }
            last = place.or(last);
        }
        Ok((targets, read, last))
    }

    /// Classifies a database error: about a target, or other.
    fn trouble(&self, error: sqlx::Error) -> Trouble {
        match data_error(&error) {
            Some((code, message)) => Trouble::Data(Bad { code, message }),
            None => Trouble::Other(self.fail(error)),
        }
    }

    /// Classifies an error of a chunk handler: about a target, or other.
    fn blame(&self, cause: Cause) -> Trouble {
        let cause = match cause.downcast::<BadTarget>() {
            Ok(bad) => return Trouble::Data(Bad { code: bad.code, message: bad.message }),
            Err(cause) => cause,
        };
        let cause = match cause.downcast::<sqlx::Error>() {
            Ok(error) => return self.trouble(*error),
            Err(cause) => cause,
        };
        match cause.downcast::<StoreError>() {
            Ok(error) => match *error {
                StoreError::Invalid { invalid, .. } => {
                    Trouble::Data(Bad { code: "invalid_job".to_owned(), message: invalid.to_string() })
                }
                StoreError::Event { invalid, .. } => {
                    Trouble::Data(Bad { code: "invalid_event".to_owned(), message: invalid.to_string() })
                }
                error => Trouble::Other(error),
            },
            Err(cause) => Trouble::Other(StoreError::Database { verb: "bulk chunk", cause }),
        }
    }
}

/// Converts an error of a statement that applies nothing: the source itself cannot be read.
fn unreadable(trouble: Trouble) -> StoreError {
    match trouble {
        Trouble::Other(error) => error,
        Trouble::Data(Bad { code, message }) => {
            StoreError::Refused { verb: "bulk source", cause: BadTarget { code, message }.into() }
        }
    }
}

/// Returns the error for a source whose rows are not after the cursor.
fn stands(cursor: Option<&Key>, answered: Option<&Key>) -> Trouble {
    let words = |key: Option<&Key>| key.map_or_else(|| "the beginning".to_owned(), Key::to_string);
    Trouble::Other(InvalidBulk::Stands { cursor: words(cursor), answered: words(answered) }.into())
}
