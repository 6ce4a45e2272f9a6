//! Work that events start: the record of the event and the work, in one transaction.

use std::sync::Arc;

use milepost_core::event::Publisher;
use milepost_core::event_work::{EventWork, Work};
use milepost_core::ident::EventId;
use milepost_core::job::NewJob;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::Connection;
use uuid::Uuid;

use crate::batch::{self, fit_of_new, fit_signal, send_signal};
use crate::clock::now_ms;
use crate::command::Hint;
use crate::enqueue;
use crate::error::Failure;
use crate::relay::parked::held_token;
use crate::store::SqliteStore;

impl SqliteStore {
    pub(super) async fn start_event_work(
        &self,
        publisher: &Publisher,
        works: &[EventWork],
    ) -> StoreResult<Option<u64>> {
        let bytes_max = self.options().payload_bytes_max;
        works.iter().try_for_each(|of| of.work.check(bytes_max))?;
        let (publisher, works) = (publisher.clone(), Arc::<[EventWork]>::from(works));
        let versions = if works.iter().all(|of| matches!(of.work, Work::Job(_))) {
            vec![None; works.len()]
        } else {
            // Checking an input can take long and would block other writers if it ran inside the transaction.
            let (name, works) = (publisher.subscription.clone(), Arc::clone(&works));
            self.read("start_work", move |conn| {
                works.iter().map(|of| check(conn, &name, of)).collect::<Result<Vec<_>, _>>()
            })
            .await?
        };
        self.write("start_work", Hint::READY, move |tx| start_all(tx, &publisher, &works, &versions)).await
    }
}

/// Checks work that is not a job, unless it has started. Returns the version of a new batch.
fn check(conn: &Connection, subscription: &str, of: &EventWork) -> Result<Option<i64>, Failure> {
    let started = (of.event.0.as_bytes(), subscription);
    if conn.prepare_cached(sql!("relay/has_work"))?.query_row(started, |row| row.get(0))? {
        return Ok(None);
    }
    match &of.work {
        Work::Job(_) => Ok(None),
        Work::Batch(batch) => fit_of_new(conn, batch),
        Work::Signal(signal) => fit_signal(conn, signal).map(|()| None),
    }
}

fn start_all(
    conn: &Connection,
    publisher: &Publisher,
    works: &[EventWork],
    versions: &[Option<i64>],
) -> Result<Option<u64>, Failure> {
    if held_token(conn, publisher)?.is_none() {
        return Ok(None);
    }
    let subscription = &publisher.subscription;
    let (mut started, mut events, mut jobs) = (0, Vec::new(), Vec::new());
    for (of, version) in works.iter().zip(versions) {
        if !note(conn, subscription, of)? {
            continue;
        }
        started += 1;
        match (&of.work, version) {
            (Work::Job(job), _) => {
                events.push(of.event);
                jobs.push(job.clone());
            }
            (Work::Batch(new), version) => {
                let made = match version {
                    Some(version) => batch::put(conn, new, *version)?,
                    None => batch::start(conn, new)?,
                };
                if made.duplicate {
                    correct(conn, subscription, of.event, made.batch.0)?;
                }
            }
            (Work::Signal(signal), _) => {
                send_signal(conn, signal)?;
            }
        }
    }
    enqueue_all(conn, subscription, &events, &jobs)?;
    Ok(Some(started))
}

/// Records an event; returns whether it has not started any work before.
fn note(conn: &Connection, subscription: &str, of: &EventWork) -> Result<bool, Failure> {
    let (kind, id) = (of.work.kind().as_str(), of.work.id());
    let row = (of.event.0.as_bytes(), subscription, kind, id.as_bytes(), now_ms());
    Ok(conn.prepare_cached(sql!("relay/note_work"))?.execute(row)? == 1)
}

fn enqueue_all(
    conn: &Connection,
    subscription: &str,
    events: &[EventId],
    jobs: &[NewJob],
) -> Result<(), Failure> {
    let made = enqueue::insert_asked(conn, jobs)?;
    for (event, made) in events.iter().zip(made).filter(|(_, made)| made.duplicate) {
        correct(conn, subscription, *event, made.job.0)?;
    }
    Ok(())
}

/// Records the job or batch that existed already under the key of a new one.
fn correct(conn: &Connection, subscription: &str, event: EventId, id: Uuid) -> Result<(), Failure> {
    let row = (event.0.as_bytes(), subscription, id.as_bytes());
    conn.prepare_cached(sql!("relay/correct_work"))?.execute(row)?;
    Ok(())
}
