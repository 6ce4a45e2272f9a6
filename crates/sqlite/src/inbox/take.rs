//! Acceptance of events by consumers.

use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::{
    LastEvent, Received, SEQUENCE_PASSED, SEQUENCE_USED, SEQUENCE_WAITS, SequencePosition, check_consumer,
    check_position, check_received,
};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::{Connection, Transaction};

use super::checkpoint::{Checkpoint, ConsumerAggregate};
use crate::clock::now_ms;
use crate::error::Failure;

type Sql<T> = rusqlite::Result<T>;

/// Records an event for a consumer in the caller's transaction; returns whether the consumer receives it for the first time. If the
/// transaction rolls back, the event is not recorded. The order of events is not checked.
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the name. After any other error the caller must roll
/// back.
pub fn once(tx: &Transaction<'_>, consumer: &str, event: EventId) -> StoreResult<bool> {
    check_consumer(consumer)?;
    told(tx, "once", first_time(tx, consumer, event))
}

/// Accepts an event in the caller's transaction, if it is the next one of its aggregate. If the result has [`more`](Received::more), accept
/// the stored events next, with [`next_parked`].
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the event or the name. After any other error the caller
/// must roll back.
pub fn receive(tx: &Transaction<'_>, consumer: &str, event: &Event) -> StoreResult<Received> {
    check_received(consumer, event)?;
    let seat = ConsumerAggregate { conn: tx, consumer, aggregate: &event.aggregate };
    told(tx, "receive", seat.receive(event))
}

/// Accepts the event after the last one of an aggregate, if it is stored, in the caller's transaction; `None`: it is not stored.
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with a name. After any other error the caller must roll back.
pub fn next_parked(
    tx: &Transaction<'_>,
    consumer: &str,
    aggregate: &Aggregate,
) -> StoreResult<Option<Event>> {
    check_position(consumer, aggregate, 1)?;
    told(tx, "next_parked", ConsumerAggregate { conn: tx, consumer, aggregate }.next())
}

/// Sets the first event of an aggregate that a consumer accepts, in the caller's transaction; earlier events count as duplicates. Never
/// moves backwards; returns whether it changed anything. Stored events may follow: call [`next_parked`].
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the sequence or a name. After any other error the caller
/// must roll back.
pub fn expect_from(
    tx: &Transaction<'_>,
    consumer: &str,
    aggregate: &Aggregate,
    sequence: i64,
) -> StoreResult<bool> {
    check_position(consumer, aggregate, sequence)?;
    told(tx, "expect_from", ConsumerAggregate { conn: tx, consumer, aggregate }.expect_from(sequence))
}

fn told<T>(tx: &Transaction<'_>, verb: &'static str, answer: Sql<T>) -> StoreResult<T> {
    answer.map_err(|error| Failure::Sql(error).at(verb, tx.path().unwrap_or_default()))
}

fn first_time(conn: &Connection, consumer: &str, event: EventId) -> Sql<bool> {
    let noted = conn.prepare_cached(sql!("inbox/once"))?.execute((consumer, event.0.as_bytes(), now_ms()))?;
    if noted == 0 {
        note_duplicate(conn, consumer)?;
    }
    Ok(noted > 0)
}

fn note_duplicate(conn: &Connection, consumer: &str) -> Sql<()> {
    conn.prepare_cached(sql!("inbox/note_duplicate"))?.execute([consumer]).map(drop)
}

impl ConsumerAggregate<'_> {
    fn receive(&self, event: &Event) -> Sql<Received> {
        let stand = self.stand()?;
        let begins_anywhere = stand.is_none() && event.sequence > 1 && self.settings()?.begins_anywhere;
        let last = stand.map(|stand| stand.last.sequence);
        match (SequencePosition::of(event.sequence, last, begins_anywhere), stand) {
            (SequencePosition::Next, Some(stand)) if stand.keeps() => {
                self.overtake(event)?;
                Ok(Received::Apply { more: true })
            }
            (SequencePosition::Next, _) => {
                self.move_on(event)?;
                Ok(Received::Apply { more: false })
            }
            (SequencePosition::Behind, stand) => self.behind(event, stand.map(|stand| stand.last)),
            (SequencePosition::Ahead, None) => {
                self.move_to(0, None)?;
                self.ahead(event, Checkpoint { last: LastEvent::default(), parked: 0, dead: 0, ready: false })
            }
            (SequencePosition::Ahead, Some(stand)) => self.ahead(event, stand),
        }
    }

    /// Handles an event before the position. A skipped event, or another one with a sequence that was used, is stored as late; it is not a
    /// duplicate.
    fn behind(&self, event: &Event, last: Option<LastEvent>) -> Sql<Received> {
        if self.was_passed(event.sequence)? {
            return self.late(event, SEQUENCE_PASSED);
        }
        if last.is_some_and(|last| last.is_before_another(event)) {
            return self.late(event, SEQUENCE_USED);
        }
        note_duplicate(self.conn, self.consumer)?;
        Ok(Received::Duplicate)
    }

    fn late(&self, event: &Event, why: &str) -> Sql<Received> {
        if self.keep_late(event, why)? {
            return Ok(Received::Late);
        }
        note_duplicate(self.conn, self.consumer)?;
        Ok(Received::Duplicate)
    }

    fn ahead(&self, event: &Event, stand: Checkpoint) -> Sql<Received> {
        let kept = Received::Parked { more: stand.ready };
        match self.waiting(event.sequence)? {
            Some(waiting) if waiting == event.id => return Ok(kept),
            Some(_) => return self.late(event, SEQUENCE_WAITS),
            // Operators decide about it.
            None if self.is_late(event)? => {
                note_duplicate(self.conn, self.consumer)?;
                return Ok(Received::Duplicate);
            }
            None => {}
        }
        let settings = self.settings()?;
        let is_new = self.park(event, settings.gap_wait)?;
        let parked = stand.parked.saturating_add(1);
        if is_new && parked > settings.parked_max && !stand.ready {
            self.give_up(
                &format!("{parked} events waited for sequence {}", stand.last.sequence + 1),
                parked,
            )?;
            return Ok(Received::Parked { more: self.stand()?.is_some_and(|stand| stand.ready) });
        }
        Ok(kept)
    }

    fn next(&self) -> Sql<Option<Event>> {
        let Some(stand) = self.stand()? else { return Ok(None) };
        let event = if stand.keeps() { self.take_kept(stand.last.sequence.saturating_add(1))? } else { None };
        if event.is_none() && (stand.keeps() || stand.ready) {
            self.look_again()?;
        }
        Ok(event)
    }
}
