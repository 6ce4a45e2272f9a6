//! Interceptors of the calls of a store, for simulations.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::run::{Chunked, Order, Position, Rehearsal, Rest, Surveyed, Trial};
use milepost_core::bulk::statements::Statements;
use milepost_core::event::{Holding, Outcome, Page, PageSize, Publisher};
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRun, BulkWork, LogReader, Store, StoreResult};
use milepost_core::transition::Verb;

/// Decides what happens to each call of a store.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// Is called before the store executes the call, which an error prevents.
    async fn before(&self, call: &'static str) -> StoreResult<()>;

    /// Is called after the store has executed the call, whose answer an error replaces.
    async fn after(&self, call: &'static str) -> StoreResult<()>;
}

/// Executes a call between the two decisions of an interceptor, if there is one.
pub async fn intercept<T>(
    interceptor: Option<&Arc<dyn Interceptor>>,
    call: &'static str,
    answer: impl Future<Output = StoreResult<T>>,
) -> StoreResult<T> {
    let Some(interceptor) = interceptor else { return answer.await };
    interceptor.before(call).await?;
    let answer = answer.await?;
    interceptor.after(call).await?;
    Ok(answer)
}

/// The work of a bulk job whose calls are intercepted.
pub(crate) struct Intercepted<T> {
    pub(crate) inner: T,
    pub(crate) interceptor: Arc<dyn Interceptor>,
}

async fn intercepted<T>(
    interceptor: &Arc<dyn Interceptor>,
    call: &'static str,
    answer: impl Future<Output = StoreResult<T>>,
) -> StoreResult<T> {
    intercept(Some(interceptor), call, answer).await
}

/// A reader of the log whose calls are intercepted.
pub(crate) struct InterceptedReader {
    store: Arc<dyn Store>,
    publisher: Publisher,
    inner: Box<dyn LogReader>,
    stands_aside: bool,
    interceptor: Arc<dyn Interceptor>,
}

impl InterceptedReader {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        publisher: Publisher,
        interceptor: Arc<dyn Interceptor>,
    ) -> Self {
        let inner = store.reader(publisher.clone());
        Self { store, publisher, inner, stands_aside: false, interceptor }
    }

    /// Decides whether the answer to a call that the store has executed is lost. Then the reader forgets what it has in memory, because it would not
    /// have learned it.
    async fn after(&mut self, call: &'static str) -> StoreResult<()> {
        let arrived = self.interceptor.after(call).await;
        if arrived.is_err() {
            self.inner = self.store.reader(self.publisher.clone());
            self.inner.stand_aside(self.stands_aside);
        }
        arrived
    }
}

#[async_trait]
impl LogReader for InterceptedReader {
    fn stand_aside(&mut self, aside: bool) {
        self.stands_aside = aside;
        self.inner.stand_aside(aside);
    }

    async fn balance(&mut self) -> StoreResult<Holding> {
        self.interceptor.before("balance").await?;
        let holding = self.inner.balance().await?;
        self.after("balance").await?;
        Ok(holding)
    }

    async fn page(&mut self, size: PageSize) -> StoreResult<Page> {
        self.interceptor.before("page").await?;
        let page = self.inner.page(size).await?;
        self.after("page").await?;
        Ok(page)
    }

    fn pass(&mut self) -> bool {
        self.inner.pass()
    }

    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()> {
        self.interceptor.before("commit").await?;
        self.inner.commit(outcome).await?;
        self.after("commit").await
    }
}

#[async_trait]
impl BulkWork for Intercepted<Arc<dyn BulkWork>> {
    fn chunk_max(&self) -> Option<Duration> {
        self.inner.chunk_max()
    }

    fn place(&self) -> Option<String> {
        self.inner.place()
    }

    fn statements(&self) -> Option<Statements> {
        self.inner.statements()
    }

    async fn check(&self) -> StoreResult<()> {
        intercepted(&self.interceptor, "check", self.inner.check()).await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, inner) = intercepted(&self.interceptor, "take", self.inner.take(order)).await?;
        Ok((position, Box::new(Intercepted { inner, interceptor: self.interceptor.clone() })))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        intercepted(&self.interceptor, "rehearse", self.inner.rehearse(order, trial)).await
    }
}

#[async_trait]
impl BulkRun for Intercepted<Box<dyn BulkRun>> {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        intercepted(&self.interceptor, "survey", self.inner.survey()).await
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        intercepted(&self.interceptor, "chunk", self.inner.chunk(rows)).await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        intercepted(&self.interceptor, "read", self.inner.read(rows)).await
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        intercepted(&self.interceptor, "pass", self.inner.pass()).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        intercepted(&self.interceptor, "rest", self.inner.rest(rest)).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        intercepted(&self.interceptor, "end", self.inner.end(then)).await
    }
}
