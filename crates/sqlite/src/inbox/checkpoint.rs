//! A consumer's position in one aggregate.

use std::time::Duration;

use milepost_core::duration::whole_ms;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::{Consumer, GapPolicy, LastEvent, SEQUENCE_PROCESSED};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params_from_iter};
use uuid::Uuid;

use crate::clock::{later_ms, now_ms};
use crate::event::read_event;
use crate::row;

type Sql<T> = rusqlite::Result<T>;

/// A consumer and an aggregate.
pub(super) struct ConsumerAggregate<'a> {
    pub(super) conn: &'a Connection,
    pub(super) consumer: &'a str,
    pub(super) aggregate: &'a Aggregate,
}

/// The consumer's position and its stored events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    pub(super) last: LastEvent,
    pub(super) parked: u32,
    pub(super) dead: u32,
    /// Whether the next event may be among the stored ones.
    pub(super) ready: bool,
}

impl Checkpoint {
    /// Returns whether any stored event could still follow.
    pub(super) const fn keeps(self) -> bool {
        self.parked > 0 || self.dead > 0
    }
}

impl ConsumerAggregate<'_> {
    const fn key(&self) -> (&str, &String, &String) {
        (self.consumer, &self.aggregate.kind, &self.aggregate.id)
    }

    /// Returns the consumer's position; `None` if it has not received any event of the aggregate.
    pub(super) fn stand(&self) -> Sql<Option<Checkpoint>> {
        let mut stand = self.conn.prepare_cached(sql!("inbox/checkpoint"))?;
        let read = |row: &Row<'_>| {
            let id: Option<[u8; 16]> = row.get(5)?;
            Ok(Checkpoint {
                last: LastEvent {
                    sequence: row.get(0)?,
                    applied_at: row::time_opt(row, 4)?,
                    id: id.map(|id| EventId(Uuid::from_bytes(id))),
                },
                parked: row.get(1)?,
                dead: row.get(2)?,
                ready: row.get(3)?,
            })
        };
        stand.query_row(self.key(), read).optional()
    }

    /// Returns the consumer's settings.
    pub(super) fn settings(&self) -> Sql<Consumer> {
        settings(self.conn, self.consumer)
    }

    /// Sets the position to an event that is processed.
    pub(super) fn move_on(&self, event: &Event) -> Sql<()> {
        self.move_to(event.sequence, Some(event.id))
    }

    /// Sets the position to a sequence; `event`: the event if one is processed.
    pub(super) fn move_to(&self, sequence: i64, event: Option<EventId>) -> Sql<()> {
        let (consumer, kind, id) = self.key();
        let (at_ms, event) = (event.map(|_| now_ms()), event.map(|event| *event.0.as_bytes()));
        let mut move_to = self.conn.prepare_cached(sql!("inbox/move_on"))?;
        move_to.execute((consumer, kind, id, sequence, at_ms, event)).map(drop)
    }

    /// Parks an event that arrived too early; returns whether it was not stored yet.
    pub(super) fn park(&self, event: &Event, wait: Duration) -> Sql<bool> {
        let now_ms = now_ms();
        let parked = self.keep(sql!("inbox/park"), event, now_ms, None)?;
        if parked {
            let mut count = self.conn.prepare_cached(sql!("inbox/waits"))?;
            let (consumer, kind, id) = self.key();
            count.execute((consumer, kind, id, later_ms(now_ms, wait)))?;
        }
        Ok(parked)
    }

    /// Keeps an event that cannot be processed any more as a dead letter; returns whether it was not kept yet.
    pub(super) fn keep_late(&self, event: &Event, why: &str) -> Sql<bool> {
        self.keep(sql!("inbox/keep_late"), event, now_ms(), Some(why))
    }

    fn keep(&self, sql: &str, event: &Event, now_ms: i64, why: Option<&str>) -> Sql<bool> {
        let (consumer, kind, id) = self.key();
        let headers = (!event.headers.is_empty()).then(|| serde_json::json!(event.headers).to_string());
        let mut keep = self.conn.prepare_cached(sql)?;
        let id_of_event = event.id.0.as_bytes();
        let emitted_at_ms = event.emitted_at.as_millisecond();
        let what: [&dyn ToSql; 10] = [
            &consumer,
            kind,
            id,
            &event.sequence,
            id_of_event,
            &event.event_type,
            &headers,
            &event.payload.get(),
            &emitted_at_ms,
            &now_ms,
        ];
        let why = why.as_ref().map(|why| why as &dyn ToSql);
        Ok(keep.execute(params_from_iter(what.into_iter().chain(why)))? > 0)
    }

    /// Removes the event with this sequence number from the stored ones and moves the position to it. `None`: it is not stored.
    pub(super) fn take_kept(&self, sequence: i64) -> Sql<Option<Event>> {
        for (sql, parked, dead) in [(sql!("inbox/take_parked"), 1, 0), (sql!("inbox/take_dead"), 0, 1)] {
            let mut take = self.conn.prepare_cached(sql)?;
            let (consumer, kind, id) = self.key();
            let mut rows = take.query((consumer, kind, id, sequence))?;
            let Some(event) = rows.next()?.map(read_event).transpose()? else { continue };
            // SQLite completes the deletion when all rows have been read.
            while rows.next()?.is_some() {}
            self.took_kept(sequence, parked, dead, event.event.id)?;
            return Ok(Some(event.event));
        }
        Ok(None)
    }

    fn took_kept(&self, sequence: i64, parked: u32, dead: u32, event: EventId) -> Sql<()> {
        let (consumer, kind, id) = self.key();
        let mut took = self.conn.prepare_cached(sql!("inbox/took_kept"))?;
        took.execute((consumer, kind, id, sequence, parked, dead, now_ms(), event.0.as_bytes())).map(drop)
    }

    /// Moves the position to an event that arrived while others are stored; the event may also be stored. Another one with its sequence becomes
    /// a dead letter.
    pub(super) fn overtake(&self, event: &Event) -> Sql<()> {
        let (consumer, kind, id) = self.key();
        let (sequence, own, why) = (event.sequence, event.id.0.as_bytes(), SEQUENCE_PROCESSED);
        let mut other = self.conn.prepare_cached(sql!("inbox/keep_other_parked"))?;
        other.execute((consumer, kind, id, sequence, own, why, now_ms()))?;
        let mut other = self.conn.prepare_cached(sql!("inbox/make_other_late"))?;
        let late =
            u32::try_from(other.execute((consumer, kind, id, sequence, own, why))?).unwrap_or(u32::MAX);
        // It is processed now, although it was kept because another one with its sequence waited.
        self.conn.prepare_cached(sql!("inbox/drop_late"))?.execute((consumer, kind, id, sequence, own))?;
        self.take_kept(sequence)?;
        self.took_kept(sequence, 0, late, event.id)
    }

    /// Returns the event that waits with this sequence.
    pub(super) fn waiting(&self, sequence: i64) -> Sql<Option<EventId>> {
        let (consumer, kind, id) = self.key();
        let mut waiting = self.conn.prepare_cached(sql!("inbox/waiting"))?;
        let read = |row: &Row<'_>| Ok(EventId(Uuid::from_bytes(row.get(0)?)));
        waiting.query_row((consumer, kind, id, sequence), read).optional()
    }

    /// Returns whether the event is kept as late.
    pub(super) fn is_late(&self, event: &Event) -> Sql<bool> {
        let (consumer, kind, id) = self.key();
        let late = (consumer, kind, id, event.sequence, event.id.0.as_bytes());
        self.conn.prepare_cached(sql!("inbox/is_late"))?.exists(late)
    }

    /// Returns whether the consumer skipped the event.
    pub(super) fn was_passed(&self, sequence: i64) -> Sql<bool> {
        let (consumer, kind, id) = self.key();
        self.conn.prepare_cached(sql!("inbox/was_passed"))?.exists((consumer, kind, id, sequence))
    }

    /// Recomputes whether the next event is stored, and the deadline of the others.
    pub(super) fn look_again(&self) -> Sql<()> {
        let wait_ms = whole_ms(self.settings()?.gap_wait);
        self.change(sql!("inbox/recount"), wait_ms).map(drop)
    }

    /// Sets the first expected event, unless the consumer has passed it. Returns whether that changed anything.
    pub(super) fn expect_from(&self, sequence: i64) -> Sql<bool> {
        if self.stand()?.is_some_and(|stand| stand.last.sequence >= sequence - 1) {
            return Ok(false);
        }
        self.move_to(sequence - 1, None)?;
        self.change(sql!("inbox/drop_parked_below"), sequence)?;
        self.change(sql!("inbox/make_late_below"), sequence)?;
        self.look_again()?;
        Ok(true)
    }

    /// Applies the consumer's gap policy to waiting events, at most `limit`. Returns the number of dead letters created.
    pub(super) fn give_up(&self, why: &str, limit: u32) -> Sql<u64> {
        let (consumer, kind, id) = self.key();
        let Some(stand) = self.stand()? else { return Ok(0) };
        let mut first = self.conn.prepare_cached(sql!("inbox/first_kept"))?;
        let first: Option<i64> = first.query_row(self.key(), |row| row.get(0))?;
        let last = stand.last.sequence;
        let Some(first) = first.filter(|first| first - 1 > last) else {
            return self.look_again().map(|()| 0);
        };
        if self.settings()?.gap_policy == GapPolicy::SkipGap {
            let mut skip = self.conn.prepare_cached(sql!("inbox/skip"))?;
            skip.execute((consumer, kind, id, last + 1, first - 1, why, now_ms()))?;
            self.change(sql!("inbox/skip_to"), first - 1)?;
            return Ok(1);
        }
        let mut bury = self.conn.prepare_cached(sql!("inbox/dead_letter_parked"))?;
        let buried = bury.execute((consumer, kind, id, why, now_ms(), limit))? as u64;
        self.conn.prepare_cached(sql!("inbox/delete_dead_lettered"))?.execute(self.key())?;
        let count = i64::try_from(buried).unwrap_or(i64::MAX);
        self.change(sql!("inbox/count_dead_lettered"), count)?;
        Ok(buried)
    }

    fn change(&self, sql: &str, value: i64) -> Sql<usize> {
        let (consumer, kind, id) = self.key();
        self.conn.prepare_cached(sql)?.execute((consumer, kind, id, value))
    }
}

/// Returns the settings of a consumer, or the defaults.
pub(super) fn settings(conn: &Connection, name: &str) -> Sql<Consumer> {
    let mut settings = conn.prepare_cached(sql!("inbox/settings"))?;
    let settings = settings.query_row([name], |row| read_settings(row, name.to_owned(), 0)).optional()?;
    Ok(settings.unwrap_or_else(|| Consumer::new(name)))
}

/// Reads settings, starting at this column.
pub(crate) fn read_settings(row: &Row<'_>, name: String, at: usize) -> Sql<Consumer> {
    Ok(Consumer {
        name,
        gap_wait: Duration::from_millis(row.get::<_, i64>(at)?.unsigned_abs()),
        parked_max: row.get(at + 1)?,
        gap_policy: row::word(row, at + 2)?,
        begins_anywhere: row.get(at + 3)?,
    })
}
