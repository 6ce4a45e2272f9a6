//! Emission of events.

use std::collections::HashMap;

use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, Emitted, InvalidEvent, NewEvent};
use milepost_core::ident::EventId;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::listing::read_event;
use crate::clock::now_ms;
use crate::enqueue::{CALL_BYTES_MAX, CALL_JOBS_MAX};
use crate::error::Failure;

/// Emits one event in the caller's transaction: it is in the log exactly if that transaction commits. If the log contains the same id with
/// the same content, nothing changes.
///
/// # Errors
/// [`StoreError::Event`] describes the problem; nothing was written then. After any other error the caller must roll back.
pub fn emit(tx: &Transaction<'_>, event: &NewEvent) -> StoreResult<Emitted> {
    let emitted = emit_many(tx, std::slice::from_ref(event))?;
    let unanswered = || StoreError::Database { verb: "emit", cause: "no result was returned".into() };
    emitted.into_iter().next().ok_or_else(unanswered)
}

/// Emits events in the caller's transaction, all or none. The results are in the order of the events; events of the same aggregate are
/// numbered in that order.
///
/// # Errors
/// [`StoreError::Event`] contains the first event that cannot be emitted; nothing was written then. After any other error the caller must
/// roll back.
pub fn emit_many(tx: &Transaction<'_>, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
    NewEvent::check_all(events, PAYLOAD_BYTES_MAX)?;
    insert(tx, events).map_err(|failure| failure.at("emit", tx.path().unwrap_or_default()))
}

/// Refuses a call that would prevent other processes from writing for too long.
pub(super) fn check_call(events: &[NewEvent]) -> StoreResult<()> {
    let too_large = |what, given, max| StoreError::TooLarge { verb: "emit", what, given, max };
    if events.len() > CALL_JOBS_MAX {
        return Err(too_large("events", events.len(), CALL_JOBS_MAX));
    }
    let bytes = events.iter().map(|event| event.payload.get().len()).sum();
    if bytes > CALL_BYTES_MAX && events.len() > 1 {
        return Err(too_large("bytes of payload", bytes, CALL_BYTES_MAX));
    }
    Ok(())
}

/// Writes events that have been checked: computes all sequence numbers first, then inserts all events.
pub(super) fn insert(conn: &Connection, events: &[NewEvent]) -> Result<Vec<Emitted>, Failure> {
    let mut places = Sequences { conn, heads: HashMap::new(), taken: HashMap::new() };
    let emitted = events.iter().enumerate().map(|(index, event)| {
        let invalid = |invalid| Failure::Told(StoreError::Event { index, invalid });
        places.find(event)?.map_err(invalid)
    });
    let emitted: Vec<Emitted> = emitted.collect::<Result<_, _>>()?;

    let at_ms = now_ms();
    let mut write = conn.prepare_cached(sql!("event/emit"))?;
    for (event, _) in events.iter().zip(&emitted).filter(|(_, emitted)| !emitted.duplicate) {
        let Some((_, sequence)) = places.taken.get(&event.id) else { continue };
        write.execute((
            event.id.0.as_bytes(),
            &event.aggregate.kind,
            &event.aggregate.id,
            sequence,
            at_ms,
            &event.event_type,
            (!event.headers.is_empty()).then(|| serde_json::json!(event.headers).to_string()),
            event.payload.get(),
        ))?;
    }
    let mut move_head = conn.prepare_cached(sql!("event/move_head"))?;
    for (aggregate, last) in &places.heads {
        move_head.execute((&aggregate.kind, &aggregate.id, last))?;
    }
    Ok(emitted)
}

/// The sequence numbers of the events of a call.
struct Sequences<'a> {
    conn: &'a Connection,
    /// The last sequence numbers of the aggregates with new events.
    heads: HashMap<&'a Aggregate, i64>,
    /// The new events.
    taken: HashMap<EventId, (&'a NewEvent, i64)>,
}

impl<'a> Sequences<'a> {
    fn find(&mut self, event: &'a NewEvent) -> rusqlite::Result<Result<Emitted, InvalidEvent>> {
        if let Some(known) = self.known(event)? {
            return Ok(known.map(|sequence| Emitted { sequence, duplicate: true }));
        }
        let last = match self.heads.get(&event.aggregate) {
            Some(last) => *last,
            None => self.head(&event.aggregate)?,
        };
        Ok(event
            .sequence_after(last)
            .inspect(|&sequence| {
                self.heads.insert(&event.aggregate, sequence);
                self.taken.insert(event.id, (event, sequence));
            })
            .map(|sequence| Emitted { sequence, duplicate: false }))
    }

    /// Returns the sequence number of an existing event with this id, if its content is the same.
    fn known(&self, event: &NewEvent) -> rusqlite::Result<Option<Result<i64, InvalidEvent>>> {
        let (sequence, same) = if let Some(&(first, sequence)) = self.taken.get(&event.id) {
            let is_same = event.is_same(
                &first.aggregate,
                &first.event_type,
                &first.headers,
                first.payload.get(),
                sequence,
            );
            (sequence, is_same)
        } else {
            let mut find = self.conn.prepare_cached(sql!("event/event"))?;
            let Some(logged) = find.query_row([event.id.0.as_bytes()], read_event).optional()? else {
                return Ok(None);
            };
            let logged = logged.event;
            let is_same = event.is_same(
                &logged.aggregate,
                &logged.event_type,
                &logged.headers,
                logged.payload.get(),
                logged.sequence,
            );
            (logged.sequence, is_same)
        };
        Ok(Some(if same { Ok(sequence) } else { Err(InvalidEvent::OtherContent { id: event.id }) }))
    }

    fn head(&self, aggregate: &Aggregate) -> rusqlite::Result<i64> {
        let mut head = self.conn.prepare_cached(sql!("event/head"))?;
        let last = head.query_row((&aggregate.kind, &aggregate.id), |row| row.get(0)).optional()?;
        Ok(last.unwrap_or(0))
    }
}
