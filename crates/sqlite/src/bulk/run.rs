//! A run that this process has taken over: taking over, survey and end. Its chunks are in `chunk.rs`.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::progress::Taken;
use milepost_core::bulk::run::{Chunked, Order, Position, Rest, Survey, Surveyed, Total};
use milepost_core::bulk::staged::ORIGIN;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkProgress, BulkRun, StoreResult};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Row, Statement, Transaction};
use serde_json::Value;

use super::progress::{self, failures_left};
use super::row::{to_json, to_sql};
use super::sql::Pages;
use super::work::{Applied, SqlBulk, Work};
use super::{chunk, row as bulk_row};
use crate::command::Hint;
use crate::error::Failure;
use crate::store::SqliteStore;

/// The values that all statements of a run need.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) work: Arc<Work>,
    pub(super) order: Order,
    pub(super) parameters: Arc<Parameters>,
    /// The run that owns the targets.
    pub(super) origin: JobId,
    /// Whether they are the failures of another run.
    pub(super) over_failures: bool,
}

/// The targets that a statement selects.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) cursor: Option<&'a Key>,
    pub(super) upper: Option<&'a Key>,
    pub(super) bound: Option<&'a Key>,
    /// How many targets to skip after the cursor.
    pub(super) skip: u32,
}

impl Facts {
    /// Returns the statements that read the targets after the cursor.
    pub(super) fn pages(&self, cursor: Option<&Key>) -> &Pages {
        let statements = &self.work.statements;
        match (self.over_failures, cursor) {
            (true, _) => &statements.failures,
            (false, Some(_)) => &statements.next,
            (false, None) => &statements.first,
        }
    }

    /// Binds the parameters of a user's statement.
    pub(super) fn bind(&self, statement: &mut Statement<'_>, place: Place<'_>) -> rusqlite::Result<()> {
        for at in 1..=statement.parameter_count() {
            let name = statement.parameter_name(at).unwrap_or_default().trim_start_matches(':').to_owned();
            statement.raw_bind_parameter(at, self.value(&name, place))?;
        }
        Ok(())
    }

    fn value(&self, name: &str, place: Place<'_>) -> Sql {
        let column = |key: Option<&Key>, at: &str| {
            let value = at.parse().ok().and_then(|at: usize| key?.0.get(at));
            value.map_or(Sql::Null, to_sql)
        };
        match name.strip_prefix("milepost_").and_then(|own| own.split_once('_').or(Some((own, "")))) {
            Some(("limit", _)) => Sql::Integer(1),
            Some(("skip", _)) => Sql::Integer(place.skip.into()),
            Some(("run", _)) => Sql::Blob(self.order.run.job.0.as_bytes().to_vec()),
            Some(("cursor", "0")) if self.over_failures && place.cursor.is_none() => Sql::Integer(0),
            Some(("cursor", at)) => column(place.cursor, at),
            Some(("upper", at)) => column(place.upper, at),
            Some(("bound", at)) => column(place.bound, at),
            _ => self.parameter(name).unwrap_or(Sql::Null),
        }
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

    fn check_parameters(&self) -> Result<(), InvalidBulk> {
        let apply = match &self.work.applied {
            Applied::Sql(apply) => apply.parameters(),
            Applied::Handler(_) | Applied::Elsewhere => Vec::new(),
        };
        for (part, names) in [("source", self.work.source.parameters()), ("apply", apply)] {
            if let Some(name) = names.into_iter().find(|name| self.parameter(name).is_none()) {
                return Err(InvalidBulk::NoParameter { name: name.to_owned(), part });
            }
        }
        Ok(())
    }
}

/// A run and its store.
pub(super) struct Run {
    pub(super) store: SqliteStore,
    pub(super) facts: Facts,
}

impl Run {
    /// Takes the run over from its previous holder.
    pub(super) async fn take(bulk: &SqlBulk, order: &Order) -> StoreResult<(Position, Self)> {
        let mut run = Self::open(bulk, order)?;
        let (work, its) = (bulk.work.clone(), order.run);
        let take = move |tx: &Transaction<'_>| progress::take(tx, its, &work.fingerprint, None);
        let Taken { position, failures, .. } = bulk.store.write("bulk", Hint::NONE, take).await?;
        (run.facts.origin, run.facts.over_failures) = (position.origin, failures.is_some());
        Ok((position, run))
    }

    pub(super) fn open(bulk: &SqlBulk, order: &Order) -> StoreResult<Self> {
        let parameters = Arc::new(Parameters::read(&order.payload).ok_or(InvalidBulk::NotAnObject)?);
        let (work, order, origin) = (bulk.work.clone(), order.clone(), order.run.job);
        let facts = Facts { work, order, parameters, origin, over_failures: false };
        facts.check_parameters()?;
        Ok(Self { store: bulk.store.clone(), facts })
    }

    /// Determines the targets. There is one writer, so no earlier transaction was open when the run was taken over.
    pub(super) async fn find_targets(&self) -> StoreResult<Survey> {
        let facts = self.facts.clone();
        let find = move |conn: &Connection| match facts.over_failures {
            true => Ok(failures_left(conn, facts.order.run.job)?),
            // The targets of a file are known when its run is started.
            false if facts.work.source.is_staged() => {
                Err(Failure::Told(InvalidBulk::NotStaged { job: facts.order.run.job }.into()))
            }
            false => targets(conn, &facts),
        };
        self.store.read("bulk", find).await
    }
}

#[async_trait]
impl BulkRun for Run {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        let survey = self.find_targets().await?;
        self.store.freeze_bulk(self.facts.order.run, &survey).await?;
        Ok(Surveyed::Frozen(survey))
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let facts = self.facts.clone();
        let hint = match facts.work.applied {
            // The handler may have enqueued jobs.
            Applied::Handler(_) => Hint::READY,
            Applied::Sql(_) | Applied::Elsewhere => Hint::NONE,
        };
        self.store.write("bulk", hint, move |tx| chunk::chunk(tx, &facts, rows)).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.store.rest_bulk(self.facts.order.run, rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.store.end_bulk(self.facts.order.run, then).await
    }
}

pub(super) fn targets(conn: &Connection, facts: &Facts) -> Result<Survey, Failure> {
    let statements = &facts.work.statements;
    let mut last = conn.prepare(&statements.last)?;
    facts.bind(&mut last, Place::default())?;
    let upper = last.raw_query().next()?.map(key_of).transpose()?;
    let Some(upper) = upper else {
        return Ok(Survey { upper: None, total: Some(Total { rows: 0, exact: true }) });
    };
    let mut count = conn.prepare(&statements.count)?;
    facts.bind(&mut count, Place { upper: Some(&upper), ..Place::default() })?;
    let rows = count.raw_query().next()?.map_or(Ok(0), |row| row.get::<_, i64>(0))?;
    let total = Some(Total { rows: rows.unsigned_abs(), exact: true });
    Ok(Survey { upper: Some(upper), total })
}

/// Reads a row that consists of a key.
pub(super) fn key_of(row: &Row<'_>) -> rusqlite::Result<Key> {
    let value = |column| match row.get_ref(column)? {
        // Invalid UTF-8 would be changed by the conversion, so it is an error.
        ValueRef::Text(_) => row.get::<_, String>(column).map(Value::from),
        value => Ok(to_json(value)),
    };
    (0..row.as_ref().column_count()).map(value).collect::<rusqlite::Result<_>>().map(Key)
}

/// Reads the job options in a row.
pub(super) fn template(
    row: &Row<'_>,
) -> rusqlite::Result<(String, String, String, Option<String>, milepost_core::job::Priority, u32)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, bulk_row::priority(row, 4)?, row.get(5)?))
}
