//! A run that this process has taken over: taking over, survey and end. Its chunks are in `chunk.rs`.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::progress::{Step, Taken};
use milepost_core::bulk::run::{Chunked, Order, Position, Rest, Survey, Surveyed};
use milepost_core::job::NewJob;
use milepost_core::port::{BulkProgress, BulkRun, StoreResult};
use milepost_core::transition::Verb;
use rusqlite::{Connection, Row, Transaction};

use super::facts::{Facts, targets};
use super::progress::{self, failures_left};
use super::spec::{Applied, Spec};
use super::{chunk, row as bulk_row};
use crate::command::Hint;
use crate::error::Failure;
use crate::store::SqliteStore;

/// A run and its store.
pub(super) struct Run {
    pub(super) store: SqliteStore,
    pub(super) facts: Facts,
    /// The chunk that was read and not yet acknowledged, and the time of the read.
    pub(super) passing: Option<(Step, Instant)>,
}

impl Run {
    /// Takes the run over from its previous holder.
    pub(super) async fn take(
        store: &SqliteStore,
        spec: &Arc<Spec>,
        order: &Order,
    ) -> StoreResult<(Position, Self)> {
        let mut run = Self::open(store, spec, order)?;
        let (spec, its) = (spec.clone(), order.run);
        let take = move |tx: &Transaction<'_>| progress::take(tx, its, &spec.fingerprint, None);
        let Taken { position, failures, .. } = store.write("bulk", Hint::NONE, take).await?;
        (run.facts.origin, run.facts.over_failures) = (position.origin, failures.is_some());
        Ok((position, run))
    }

    pub(super) fn open(store: &SqliteStore, spec: &Arc<Spec>, order: &Order) -> StoreResult<Self> {
        let parameters = Arc::new(Parameters::read(&order.payload).ok_or(InvalidBulk::NotAnObject)?);
        let (spec, order, origin) = (spec.clone(), order.clone(), order.run.job);
        let facts = Facts { spec, order, parameters, origin, over_failures: false };
        facts.check_parameters()?;
        Ok(Self { store: store.clone(), facts, passing: None })
    }

    /// Determines the targets. There is one writer, so no earlier transaction was open when the run was taken over.
    pub(super) async fn find_targets(&self) -> StoreResult<Survey> {
        let facts = self.facts.clone();
        let find = move |conn: &Connection| match facts.over_failures {
            true => Ok(failures_left(conn, facts.order.run.job)?),
            // The targets of a file are known when its run is started.
            false if facts.spec.source.is_staged() => {
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
        let hint = match facts.spec.applied {
            // The handler may have enqueued jobs.
            Applied::Handler(_) => Hint::READY,
            Applied::Sql(_) | Applied::Elsewhere => Hint::NONE,
        };
        self.store.write("bulk", hint, move |tx| chunk::chunk(tx, &facts, rows)).await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        self.read_targets(rows).await
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        self.pass_targets().await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.store.rest_bulk(self.facts.order.run, rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.store.end_bulk(self.facts.order.run, then).await
    }
}

/// Reads the job options in a row.
pub(super) fn template(
    row: &Row<'_>,
) -> rusqlite::Result<(String, String, String, Option<String>, milepost_core::job::Priority, u32)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, bulk_row::priority(row, 4)?, row.get(5)?))
}
