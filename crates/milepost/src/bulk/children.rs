//! Jobs or events that are created in the store for targets on another database: one for each target, and the same ones if a chunk is
//! repeated.

use async_trait::async_trait;
use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::run::{BadTarget, Chunk, Target};
use milepost_core::error::StoreError;
use milepost_core::event::{InvalidEvent, NewEvent};
use milepost_core::job::NewJob;
use milepost_core::port::{Store, StoreResult};

/// The most items created in one call to the store, and the most bytes of their targets.
const CALL_MAX: usize = 1_000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The item that is created for every target.
#[derive(Clone)]
pub(super) enum Made {
    /// A job from this template.
    Job(NewJob),
    /// An event from this template.
    Event(EventTemplate),
}

/// A target for which nothing can be created.
pub(super) type Refused<'t> = (&'t Target, BadTarget);

impl Made {
    /// Creates the items for the targets of a chunk; returns the targets for which none can be created.
    pub(super) async fn make<'t>(
        &self,
        store: &dyn Store,
        chunk: Chunk<'t>,
    ) -> StoreResult<Vec<Refused<'t>>> {
        match self {
            Self::Job(template) => put(store, chunk, |one| one.child_jobs(template)).await,
            Self::Event(template) => put(store, chunk, |one| one.child_events(template)).await,
        }
    }
}

/// An item that a store accepts in bulk.
#[async_trait]
trait Item: Clone + Send + Sync {
    async fn put(store: &dyn Store, items: &[Self]) -> StoreResult<()>;
}

#[async_trait]
impl Item for NewJob {
    async fn put(store: &dyn Store, items: &[Self]) -> StoreResult<()> {
        store.enqueue_many(items).await.map(drop)
    }
}

#[async_trait]
impl Item for NewEvent {
    async fn put(store: &dyn Store, items: &[Self]) -> StoreResult<()> {
        store.emit_many(items).await.map(drop)
    }
}

async fn put<'t, I: Item>(
    store: &dyn Store,
    chunk: Chunk<'t>,
    make: impl Fn(Chunk<'t>) -> Result<Vec<I>, BadTarget>,
) -> StoreResult<Vec<Refused<'t>>> {
    let (mut made, mut refused) = (Vec::with_capacity(chunk.targets.len()), Vec::new());
    for target in chunk.targets {
        match make(Chunk { targets: std::slice::from_ref(target), ..chunk }) {
            Ok(items) => made.extend(items.into_iter().map(|item| (target, item))),
            Err(bad) => refused.push((target, bad)),
        }
    }
    for page in pages(&made) {
        refused.extend(put_page(store, page).await?);
    }
    Ok(refused)
}

/// Creates the items of one call; returns the targets whose items the store rejected.
async fn put_page<'t, I: Item>(store: &dyn Store, page: &[(&'t Target, I)]) -> StoreResult<Vec<Refused<'t>>> {
    let (mut targets, mut items): (Vec<&Target>, Vec<I>) = page.iter().cloned().unzip();
    let mut refused = Vec::new();
    while !items.is_empty() {
        let Err(error) = I::put(store, &items).await else { break };
        let (index, bad) = blame(error)?;
        if index >= items.len() {
            return Err(StoreError::Database {
                verb: "bulk chunk",
                cause: "the error names no target".into(),
            });
        }
        items.remove(index);
        let target = targets.remove(index);
        refused.extend(bad.map(|bad| (target, bad)));
    }
    Ok(refused)
}

/// Returns the item that a store rejected, and why; `None`: the target has changed since an earlier run of this chunk emitted its event.
fn blame(error: StoreError) -> StoreResult<(usize, Option<BadTarget>)> {
    let bad = |code: &str, message: String| Some(BadTarget { code: code.to_owned(), message });
    match error {
        StoreError::Invalid { index, invalid } => Ok((index, bad("invalid_job", invalid.to_string()))),
        StoreError::Event { index, invalid: InvalidEvent::OtherContent { .. } } => Ok((index, None)),
        StoreError::Event { index, invalid } => Ok((index, bad("invalid_event", invalid.to_string()))),
        error => Err(error),
    }
}

/// Splits the items into calls that every store accepts.
fn pages<'p, 't, I>(made: &'p [(&'t Target, I)]) -> impl Iterator<Item = &'p [(&'t Target, I)]> {
    let mut rest = made;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |(target, _): &&(&Target, I)| {
            bytes += target.row.len();
            bytes <= CALL_BYTES_MAX
        };
        let count = rest.iter().take(CALL_MAX).take_while(fits).count().max(1).min(rest.len());
        let (page, others) = rest.split_at(count);
        rest = others;
        (!page.is_empty()).then_some(page)
    })
}
