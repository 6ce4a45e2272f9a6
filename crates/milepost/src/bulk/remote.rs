//! Bulk jobs whose targets are on another database than the store's: read the position in the store, apply the chunk on the other database,
//! then move the cursor in the store. A crash in between repeats the chunk.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::progress::{BeforeChunk, Step, Taken, TargetRange};
use milepost_core::bulk::run::{
    BadTarget, Chunk, Chunked, Order, Parts, Position, Rehearsal, Rest, Surveyed, Trial,
};
use milepost_core::bulk::statements::Statements;
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRun, BulkTargets, BulkVisit, BulkWork, Store, StoreResult};
use milepost_core::transition::Verb;

use super::children::Made;

/// A bulk job whose targets are on another database than the store's.
///
/// Its chunks run at least once: the effects of a chunk are committed before the store records it, so a crash in between repeats the chunk.
/// Everything else is as with targets in the store's own database.
///
/// ```no_run
/// # async fn run(store: std::sync::Arc<dyn milepost::Store>) -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use milepost::bulk::{Bulk, Definition, Remote};
/// use milepost_postgres::bulk::{Database, Effect, PostgresTargets};
///
/// let shop = Database::new("shop", "postgres://app@db.shop.internal/shop")?;
/// let source = "select id from customer where id > :cursor order by id limit :limit";
/// let apply = "insert into note (run, customer) select :bulk_id, id from chunk";
/// let effect = Some(Effect::Sql(apply.to_owned()));
/// let targets = PostgresTargets::new(&shop, source, &["id".to_owned()], effect)?;
/// let definition = Definition::new("greet");
/// let greet = Bulk::new(definition.clone(), Arc::new(Remote::new(store, &definition, Arc::new(targets))));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Remote {
    store: Arc<dyn Store>,
    targets: Arc<dyn BulkTargets>,
    fingerprint: String,
    /// The item that is created in the store for every target, instead of applying the targets.
    made: Option<Made>,
}

impl Remote {
    /// Creates a bulk job whose targets are applied on their database or, with [`Bulk::elsewhere`](super::Bulk::elsewhere), read from it.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, definition: &Definition, targets: Arc<dyn BulkTargets>) -> Self {
        Self { store, targets, fingerprint: definition.fingerprint.clone(), made: None }
    }

    /// Enqueues a job in the store for every target instead. The job key is derived from the run and the target: one job each, even if a
    /// chunk is repeated.
    #[must_use]
    pub fn enqueue(self, template: NewJob) -> Self {
        Self { made: Some(Made::Job(template)), ..self }
    }

    /// Emits an event in the store for every target instead. The event id is derived from the run and the target: one event each, even if a
    /// chunk is repeated, unless the event has been deleted from the log since.
    #[must_use]
    pub fn emit(self, template: EventTemplate) -> Self {
        Self { made: Some(Made::Event(template)), ..self }
    }

    async fn take_run(&self, order: &Order) -> StoreResult<(Position, RemoteRun)> {
        let mut visit = self.targets.visit(order).await?;
        let taken = self.store.take_bulk(order.run, &self.fingerprint, visit.since()).await?;
        visit.settle(&taken).await?;
        let (store, made, order) = (self.store.clone(), self.made.clone(), order.clone());
        let position = taken.position.clone();
        Ok((position, RemoteRun { store, visit, taken, order, made, passing: None }))
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("place", &self.targets.place()).finish_non_exhaustive()
    }
}

#[async_trait]
impl BulkWork for Remote {
    fn place(&self) -> Option<String> {
        Some(self.targets.place())
    }

    fn statements(&self) -> Option<Statements> {
        self.targets.statements()
    }

    async fn check(&self) -> StoreResult<()> {
        self.targets.check().await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, run) = self.take_run(order).await?;
        Ok((position, Box::new(run)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        if self.made.is_some() {
            let why = "it writes to the store, and its targets are on another database";
            return Err(StoreError::Bulk(InvalidBulk::NoDryRun { why }));
        }
        self.targets.rehearse(order, trial).await
    }
}

/// A run that one worker has taken over.
struct RemoteRun {
    store: Arc<dyn Store>,
    visit: Box<dyn BulkVisit>,
    taken: Taken,
    order: Order,
    made: Option<Made>,
    /// The chunk that was read and not yet recorded as done, and when it was read.
    passing: Option<(Step, Instant)>,
}

impl RemoteRun {
    /// Returns the next range of targets, or the stop request.
    async fn look(&mut self, rows: u32) -> StoreResult<Result<TargetRange, Verb>> {
        let BeforeChunk { range, stop } = self.store.look_bulk(self.order.run, rows).await?;
        Ok(stop.map_or(Ok(range), Err))
    }

    /// Creates an item for each of the next targets. A target for which none can be created fails.
    async fn make(&mut self, range: &TargetRange, rows: u32, made: &Made) -> StoreResult<Parts> {
        let (targets, mut parts) = self.visit.read(range, rows).await?;
        let (run, origin) = (self.order.run, self.taken.position.origin);
        let payload = self.order.payload.as_str();
        let chunk = Chunk { run, origin, payload, cursor: None, targets: &targets };
        for (target, BadTarget { code, message }) in made.make(self.store.as_ref(), chunk).await? {
            parts.fail(range.place(&target.key), code, message);
        }
        Ok(parts)
    }
}

#[async_trait]
impl BulkRun for RemoteRun {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        let surveyed = match &self.taken.failures {
            Some(failures) => Surveyed::Frozen(failures.clone()),
            None => self.visit.survey(&self.taken.since).await?,
        };
        if let Surveyed::Frozen(survey) = &surveyed {
            self.store.freeze_bulk(self.order.run, survey).await?;
        }
        Ok(surveyed)
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let began = Instant::now();
        let range = match self.look(rows).await? {
            Ok(range) => range,
            Err(verb) => return Ok(Chunked::Stopped(verb)),
        };
        let parts = match self.made.clone() {
            None => self.visit.apply(&range, rows).await?,
            Some(made) => self.make(&range, rows, &made).await?,
        };
        let step = Step { from: range.cursor, parts, rows, took: began.elapsed() };
        self.store.advance_bulk(self.order.run, &step).await.map(Chunked::Done)
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let began = Instant::now();
        let range = match self.look(rows).await? {
            Ok(range) => range,
            Err(verb) => return Ok(Err(verb)),
        };
        let (targets, parts) = self.visit.read(&range, rows).await?;
        self.passing = Some((Step { from: range.cursor, parts, rows, took: began.elapsed() }, began));
        Ok(Ok(targets.into_iter().map(|target| target.row).collect()))
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        let (step, began) = self.passing.take().ok_or(StoreError::Fenced(self.order.run))?;
        let step = Step { took: began.elapsed(), ..step };
        self.store.advance_bulk(self.order.run, &step).await.map(Chunked::Done)
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.store.rest_bulk(self.order.run, rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.store.end_bulk(self.order.run, then).await
    }
}
