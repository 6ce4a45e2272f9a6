//! What all statements of a run need: its parameters, and the values that they are bound to.

use std::sync::Arc;

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::run::{Order, Survey, Total};
use milepost_core::bulk::staged::ORIGIN;
use milepost_core::ident::JobId;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, Statement};

use super::row as bulk_row;
use super::row::{Bound, to_json, to_sql};
use super::spec::Spec;
use super::sql::Pages;
use crate::error::Failure;

/// The values that all statements of a run need.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) spec: Arc<Spec>,
    pub(super) order: Order,
    pub(super) parameters: Arc<Parameters>,
    /// The run that owns the targets.
    pub(super) origin: JobId,
    /// Whether they are the failures of another run.
    pub(super) over_failures: bool,
}

/// The targets that a statement selects.
#[derive(Clone, Copy, Default)]
pub(super) struct Selection<'a> {
    pub(super) cursor: Option<&'a Key>,
    pub(super) upper: Option<&'a Key>,
    pub(super) bound: Option<&'a Key>,
    /// How many targets to skip after the cursor.
    pub(super) skip: u32,
}

impl Facts {
    /// Returns the statements that read the targets after the cursor.
    pub(super) fn pages(&self, cursor: Option<&Key>) -> &Pages {
        let statements = &self.spec.statements;
        match (self.over_failures, cursor) {
            (true, _) => &statements.failures,
            (false, Some(_)) => &statements.next,
            (false, None) => &statements.first,
        }
    }

    /// Binds the parameters of a user's statement.
    pub(super) fn bind(&self, statement: &mut Statement<'_>, place: Selection<'_>) -> rusqlite::Result<()> {
        for at in 1..=statement.parameter_count() {
            let name = statement.parameter_name(at).unwrap_or_default().trim_start_matches(':').to_owned();
            statement.raw_bind_parameter(at, self.value(&name, place))?;
        }
        Ok(())
    }

    fn value(&self, name: &str, place: Selection<'_>) -> Bound {
        let column = |key: Option<&Key>, at: &str| {
            let value = at.parse().ok().and_then(|at: usize| key?.0.get(at));
            value.map_or(Bound::Value(Sql::Null), to_sql)
        };
        let plain =
            match name.strip_prefix("milepost_").and_then(|own| own.split_once('_').or(Some((own, "")))) {
                Some(("limit", _)) => Sql::Integer(1),
                Some(("skip", _)) => Sql::Integer(place.skip.into()),
                Some(("run", _)) => Sql::Blob(self.order.run.job.0.as_bytes().to_vec()),
                Some(("cursor", "0")) if self.over_failures && place.cursor.is_none() => Sql::Integer(0),
                Some(("cursor", at)) => return column(place.cursor, at),
                Some(("upper", at)) => return column(place.upper, at),
                Some(("bound", at)) => return column(place.bound, at),
                _ => self.parameter(name).unwrap_or(Sql::Null),
            };
        plain.into()
    }

    fn parameter(&self, name: &str) -> Option<Sql> {
        match name {
            "bulk_id" => Some(Sql::Text(self.origin.to_string())),
            "run_id" => Some(Sql::Text(self.order.run.job.to_string())),
            ORIGIN => Some(Sql::Blob(self.origin.0.as_bytes().to_vec())),
            "nominal_at" => Some(self.order.nominal_at.map_or(Sql::Null, |at| Sql::Text(at.to_string()))),
            name => self.parameters.get(name).map(bulk_row::of_parameter),
        }
    }

    /// Checks that every parameter of the statements exists.
    pub(super) fn check_parameters(&self) -> Result<(), InvalidBulk> {
        let exists = |name: &str| self.parameter(name).is_some();
        self.spec.applied.check_parameters(&self.spec.source, exists)
    }
}

/// Determines the last target, and how many there are.
pub(super) fn targets(conn: &Connection, facts: &Facts) -> Result<Survey, Failure> {
    let statements = &facts.spec.statements;
    let mut last = conn.prepare(&statements.last)?;
    facts.bind(&mut last, Selection::default())?;
    let upper = last.raw_query().next()?.map(key_of).transpose()?;
    let Some(upper) = upper else {
        return Ok(Survey { upper: None, total: Some(Total { rows: 0, exact: true }) });
    };
    let mut count = conn.prepare(&statements.count)?;
    facts.bind(&mut count, Selection { upper: Some(&upper), ..Selection::default() })?;
    let rows = count.raw_query().next()?.map_or(Ok(0), |row| row.get::<_, i64>(0))?;
    let total = Some(Total { rows: rows.unsigned_abs(), exact: true });
    Ok(Survey { upper: Some(upper), total })
}

/// Reads a row that consists of a key.
pub(super) fn key_of(row: &Row<'_>) -> rusqlite::Result<Key> {
    let value = |column| Ok(to_json(row.get_ref(column)?));
    (0..row.as_ref().column_count()).map(value).collect::<rusqlite::Result<_>>().map(Key)
}
