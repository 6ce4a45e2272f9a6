//! Work that events start: the record of the event and the work, in one transaction.

use std::collections::HashSet;

use milepost_core::error::StoreError;
use milepost_core::event::Publisher;
use milepost_core::event_work::{EventWork, Work};
use milepost_core::ident::EventId;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use uuid::Uuid;

use crate::batch::{send_within, signal_error, start_error, start_within};
use crate::enqueue::{self, all_enqueued};
use crate::error::enqueue_error;
use crate::row::{self, Decoded};
use crate::session::Session;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(super) async fn start_event_work(
        &self,
        publisher: &Publisher,
        works: &[EventWork],
    ) -> StoreResult<Option<u64>> {
        let bytes_max = self.inner.options.payload_bytes_max;
        works.iter().try_for_each(|of| of.work.check(bytes_max))?;
        // Two relays that start the same events wait for each other: in this order, not in a circle.
        let mut works: Vec<&EventWork> = works.iter().collect();
        works.sort_unstable_by_key(|of| of.event);
        let works = &works;
        let started =
            self.inner.intake.atomically(async |session| start_all(session, publisher, works).await).await;
        started.map_err(|e| self.work_error(works, e))?
    }

    /// Returns the error of a statement, as that of the verb that creates the same work.
    fn work_error(&self, works: &[&EventWork], error: sqlx::Error) -> StoreError {
        let place = &self.inner.place;
        match works.first().map(|of| &of.work) {
            Some(Work::Batch(batch)) => start_error(place, &batch.dag, None, error),
            Some(Work::Signal(signal)) => signal_error(place, signal, error),
            _ => enqueue_error(place, error),
        }
    }
}

async fn start_all(
    session: &mut Session<'_>,
    publisher: &Publisher,
    works: &[&EventWork],
) -> Decoded<StoreResult<Option<u64>>> {
    let lease = session.row(sqlx::query(sql!("relay/hold_lease")).bind(publisher.id.0)).await?;
    if lease.is_none() {
        return Ok(Ok(None));
    }
    let new = note(session, &publisher.subscription, works).await?;
    let (mut events, mut jobs) = (Vec::new(), Vec::new());
    for of in works.iter().filter(|of| new.contains(&of.event)) {
        let refused = match &of.work {
            Work::Job(job) => {
                events.push(of.event);
                jobs.push(job.clone());
                continue;
            }
            Work::Batch(batch) => match start_within(session, batch).await? {
                Ok(started) if started.duplicate => {
                    correct(session, &publisher.subscription, vec![of.event.0], vec![started.batch.0])
                        .await?;
                    continue;
                }
                Ok(_) => continue,
                Err(refused) => refused,
            },
            Work::Signal(signal) => match send_within(session, signal).await? {
                Ok(_) => continue,
                Err(refused) => refused,
            },
        };
        // The transaction that is committed then is empty.
        session.script("rollback; begin").await?;
        return Ok(Err(refused));
    }
    enqueue_all(session, &publisher.subscription, &events, &jobs).await?;
    Ok(Ok(Some(new.len() as u64)))
}

/// Records the events; returns those that have not started any work before.
async fn note(
    session: &mut Session<'_>,
    subscription: &str,
    works: &[&EventWork],
) -> Decoded<HashSet<EventId>> {
    let query = sqlx::query(sql!("relay/note_work"))
        .bind(works.iter().map(|of| of.event.0).collect::<Vec<_>>())
        .bind(subscription.to_owned())
        .bind(works.iter().map(|of| of.work.kind().as_str()).collect::<Vec<_>>())
        .bind(works.iter().map(|of| of.work.id()).collect::<Vec<_>>());
    let new: Vec<Uuid> = session.rows(query).await.and_then(row::values)?;
    Ok(new.into_iter().map(EventId).collect())
}

async fn enqueue_all(
    session: &mut Session<'_>,
    subscription: &str,
    events: &[EventId],
    jobs: &[NewJob],
) -> Decoded<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let made: Vec<Enqueued> = session.rows(enqueue::insert(jobs)).await.and_then(all_enqueued)?;
    let existing = events.iter().zip(&made).filter(|(_, made)| made.duplicate);
    let (events, ids): (Vec<Uuid>, Vec<Uuid>) = existing.map(|(event, made)| (event.0, made.job.0)).unzip();
    correct(session, subscription, events, ids).await
}

/// Records the jobs or batches that existed already under the keys of new ones.
async fn correct(
    session: &mut Session<'_>,
    subscription: &str,
    events: Vec<Uuid>,
    ids: Vec<Uuid>,
) -> Decoded<()> {
    if events.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(sql!("relay/correct_work")).bind(subscription.to_owned()).bind(events).bind(ids);
    session.execute(query).await.map(drop)
}
