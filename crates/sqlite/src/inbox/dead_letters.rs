//! Dead letters of inboxes.

use std::collections::BTreeSet;

use milepost_core::error::StoreError;
use milepost_core::event::Aggregate;
use milepost_core::inbox::listing::{DeadReason, LetterId};
use milepost_core::inbox::{InvalidInbox, SEQUENCE_FREED};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};

use super::checkpoint::ConsumerAggregate;
use crate::clock::now_ms;
use crate::error::Failure;
use crate::row;

/// The consumer, the aggregate, the reason and the first sequence of a dead letter.
struct DeadLetter {
    consumer: String,
    aggregate: Aggregate,
    reason: DeadReason,
    sequence: i64,
}

/// Parks the events again, where they wait for the missing event before them; all or none.
pub(super) fn retry(conn: &Connection, letters: &[LetterId]) -> Result<u64, Failure> {
    let letters: BTreeSet<LetterId> = letters.iter().copied().collect();
    for &id in &letters {
        let refused = |invalid: InvalidInbox| Failure::Told(StoreError::Inbox(invalid));
        let letter = find(conn, id)?.ok_or_else(|| refused(InvalidInbox::NoSuchLetter(id)))?;
        if letter.reason != DeadReason::Gap {
            return Err(refused(InvalidInbox::Past(id)));
        }
        conn.prepare_cached(sql!("inbox/park_dead_letter"))?.execute((id.0, now_ms()))?;
        conn.prepare_cached(sql!("inbox/drop"))?.execute([id.0])?;
        letter.seat(conn).look_again()?;
    }
    Ok(letters.len() as u64)
}

/// Deletes dead letters permanently; returns how many existed.
pub(super) fn drop_all(conn: &Connection, letters: &[LetterId]) -> Result<u64, Failure> {
    let mut dropped = 0;
    for &id in letters {
        dropped += u64::from(drop_one(conn, id)?);
    }
    Ok(dropped)
}

/// Deletes up to `limit` dead letters older than a time; returns how many.
pub(crate) fn forget_old(conn: &Connection, before_ms: i64, limit: u32) -> rusqlite::Result<u64> {
    let mut old = conn.prepare_cached(sql!("inbox/old_letters"))?;
    let old: Vec<i64> =
        old.query_map((before_ms, limit), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for &id in &old {
        drop_one(conn, LetterId(id))?;
    }
    Ok(old.len() as u64)
}

/// Deletes a dead letter; returns whether it existed.
fn drop_one(conn: &Connection, id: LetterId) -> rusqlite::Result<bool> {
    let Some(letter) = find(conn, id)? else { return Ok(false) };
    conn.prepare_cached(sql!("inbox/drop"))?.execute([id.0])?;
    if letter.reason == DeadReason::Gap {
        let of = &letter.aggregate;
        let place = (&letter.consumer, &of.kind, &of.id, letter.sequence, SEQUENCE_FREED);
        conn.prepare_cached(sql!("inbox/free_late"))?.execute(place)?;
        letter.seat(conn).look_again()?;
    }
    Ok(true)
}

fn find(conn: &Connection, id: LetterId) -> rusqlite::Result<Option<DeadLetter>> {
    let mut find = conn.prepare_cached(sql!("inbox/letter"))?;
    let letter = find.query_row([id.0], |row| {
        Ok(DeadLetter {
            consumer: row.get(0)?,
            aggregate: Aggregate { kind: row.get(1)?, id: row.get(2)? },
            reason: row::word(row, 3)?,
            sequence: row.get(4)?,
        })
    });
    letter.optional()
}

impl DeadLetter {
    fn seat<'a>(&'a self, conn: &'a Connection) -> ConsumerAggregate<'a> {
        ConsumerAggregate { conn, consumer: &self.consumer, aggregate: &self.aggregate }
    }
}
