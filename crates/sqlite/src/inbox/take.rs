//! Taking events in.

use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::{Place, Received, check_consumer, check_position, check_received};
use milepost_core::port::StoreResult;
use rusqlite::{Connection, Transaction};

use super::seat::{Seat, Stand};
use crate::clock::now_ms;
use crate::failure::Failure;
use crate::query;

type Sql<T> = rusqlite::Result<T>;

/// Whether a consumer has this event for the first time, in the caller's transaction: if that rolls back, it was not. Says
/// nothing of order.
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) says what is wrong with the name. After any other error the caller
/// must roll back.
pub fn once(tx: &Transaction<'_>, consumer: &str, event: EventId) -> StoreResult<bool> {
    check_consumer(consumer)?;
    told(tx, "once", first_time(tx, consumer, event))
}

/// Takes in an event in the caller's transaction, if it is the next one of its aggregate. After an answer with
/// [`more`](Received::more) take in what was kept, by [`next_parked`].
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) says what is wrong with the event or the name. After any other error
/// the caller must roll back.
pub fn receive(tx: &Transaction<'_>, consumer: &str, event: &Event) -> StoreResult<Received> {
    check_received(consumer, event)?;
    let seat = Seat { conn: tx, consumer, aggregate: &event.aggregate };
    told(tx, "receive", seat.receive(event))
}

/// Takes in the event that follows the last one of an aggregate, if it was kept, in the caller's transaction; `None`: there is none.
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) says what is wrong with a name. After any other error the caller must
/// roll back.
pub fn next_parked(
    tx: &Transaction<'_>,
    consumer: &str,
    aggregate: &Aggregate,
) -> StoreResult<Option<Event>> {
    check_position(consumer, aggregate, 1)?;
    told(tx, "next_parked", Seat { conn: tx, consumer, aggregate }.next())
}

/// Says from which event on a consumer takes in those of an aggregate, in the caller's transaction; what comes before is a duplicate
/// to it. Never goes back; answers whether it changed anything. Kept events can follow then: ask [`next_parked`].
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) says what is wrong with the sequence or a name. After any other error
/// the caller must roll back.
pub fn expect_from(
    tx: &Transaction<'_>,
    consumer: &str,
    aggregate: &Aggregate,
    sequence: i64,
) -> StoreResult<bool> {
    check_position(consumer, aggregate, sequence)?;
    told(tx, "expect_from", Seat { conn: tx, consumer, aggregate }.expect_from(sequence))
}

fn told<T>(tx: &Transaction<'_>, verb: &'static str, answer: Sql<T>) -> StoreResult<T> {
    answer.map_err(|error| Failure::Sql(error).at(verb, tx.path().unwrap_or_default()))
}

fn first_time(conn: &Connection, consumer: &str, event: EventId) -> Sql<bool> {
    let noted = conn.prepare_cached(query::INBOX_ONCE)?.execute((consumer, event.0.as_bytes(), now_ms()))?;
    if noted == 0 {
        note_duplicate(conn, consumer)?;
    }
    Ok(noted > 0)
}

fn note_duplicate(conn: &Connection, consumer: &str) -> Sql<()> {
    conn.prepare_cached(query::INBOX_NOTE_DUPLICATE)?.execute([consumer]).map(drop)
}

impl Seat<'_> {
    fn receive(&self, event: &Event) -> Sql<Received> {
        let stand = self.stand()?;
        let begins_anywhere = stand.is_none() && event.sequence > 1 && self.settings()?.begins_anywhere;
        match (Place::of(event.sequence, stand.map(|stand| stand.last), begins_anywhere), stand) {
            (Place::Next, Some(stand)) if stand.keeps() => {
                self.overtake(event.sequence)?;
                Ok(Received::Apply { more: true })
            }
            (Place::Next, _) => {
                self.move_on(event.sequence)?;
                Ok(Received::Apply { more: false })
            }
            (Place::Behind, _) => self.behind(event),
            (Place::Ahead, None) => {
                self.move_on(0)?;
                self.ahead(event, Stand { last: 0, parked: 0, dead: 0, ready: false })
            }
            (Place::Ahead, Some(stand)) => self.ahead(event, stand),
        }
    }

    /// One past which the consumer went on is none that it has taken in.
    fn behind(&self, event: &Event) -> Sql<Received> {
        if self.was_passed(event.sequence)? && self.keep_late(event)? {
            return Ok(Received::Late);
        }
        note_duplicate(self.conn, self.consumer)?;
        Ok(Received::Duplicate)
    }

    fn ahead(&self, event: &Event, stand: Stand) -> Sql<Received> {
        let kept = Received::Parked { more: stand.ready };
        if stand.dead > 0 && self.is_dead(event.sequence)? {
            return Ok(kept);
        }
        let settings = self.settings()?;
        let is_new = self.park(event, settings.gap_wait)?;
        let parked = stand.parked.saturating_add(1);
        if is_new && parked > settings.parked_max && !stand.ready {
            self.give_up(&format!("{parked} events waited for {}", stand.last + 1), parked)?;
            return Ok(Received::Parked { more: self.stand()?.is_some_and(|stand| stand.ready) });
        }
        Ok(kept)
    }

    fn next(&self) -> Sql<Option<Event>> {
        let Some(stand) = self.stand()? else { return Ok(None) };
        let event = if stand.keeps() { self.take_kept(stand.last.saturating_add(1))? } else { None };
        if event.is_none() && (stand.keeps() || stand.ready) {
            self.look_again()?;
        }
        Ok(event)
    }
}
