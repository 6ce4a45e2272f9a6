//! Export of inboxes.

use milepost_core::event::Aggregate;
use milepost_core::ident::{EventId, JobId};
use milepost_core::inbox::Consumer;
use milepost_core::relocation::rows::{Checkpoint, InboxTally, ParkedEvent, ProcessedEvent};
use rusqlite::Row;

use super::Sql;
use crate::event::read_event;
use crate::inbox::read_settings;
use crate::row;

pub(super) fn consumer(row: &Row<'_>) -> Sql<Consumer> {
    read_settings(row, row.get(0)?, 1)
}

pub(super) fn processed_event(row: &Row<'_>) -> Sql<ProcessedEvent> {
    let JobId(event) = row::job_id(row, 1)?;
    Ok(ProcessedEvent { consumer: row.get(0)?, event: EventId(event), at: row::time(row, 2)? })
}

pub(super) fn checkpoint(row: &Row<'_>) -> Sql<Checkpoint> {
    Ok(Checkpoint {
        consumer: row.get(0)?,
        aggregate: Aggregate { kind: row.get(1)?, id: row.get(2)? },
        last: row.get(3)?,
        parked: row.get(4)?,
        dead: row.get(5)?,
        ready: row.get(6)?,
        gives_up_at: row::time_opt(row, 7)?,
    })
}

pub(super) fn parked_event(row: &Row<'_>) -> Sql<ParkedEvent> {
    let kept = read_event(row)?;
    Ok(ParkedEvent {
        pos: kept.pos,
        event: kept.event,
        consumer: row.get(9)?,
        parked_at: row::time(row, 10)?,
    })
}

pub(super) fn tally(row: &Row<'_>) -> Sql<InboxTally> {
    Ok(InboxTally { consumer: row.get(0)?, duplicates: row.get(1)? })
}
