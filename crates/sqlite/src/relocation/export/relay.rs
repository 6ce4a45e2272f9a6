//! Export of subscriptions.

use milepost_core::event::Aggregate;
use milepost_core::ident::{EventId, JobId};
use milepost_core::relocation::rows::{
    ChangeSource, DeadEvent, EventWork, HeldEvent, ParkedAggregate, Pause, Subscription,
};
use rusqlite::Row;

use super::Sql;
use crate::row;

pub(super) fn subscription(row: &Row<'_>) -> Sql<Subscription> {
    let paused = row::time_opt(row, 2)?.zip(row.get(3)?);
    Ok(Subscription {
        name: row.get(0)?,
        made_at: row::time(row, 1)?,
        paused: paused.map(|(at, why)| Pause { at, why }),
        pos: row.get(4)?,
        advanced_at: row::time_opt(row, 5)?,
        token: row.get(6)?,
    })
}

pub(super) fn parked_aggregate(row: &Row<'_>) -> Sql<ParkedAggregate> {
    Ok(ParkedAggregate {
        subscription: row.get(0)?,
        aggregate: aggregate(row)?,
        parked_at: row::time(row, 3)?,
        deliveries: row.get(4)?,
        next_delivery_at: row::time_opt(row, 5)?,
        why: row.get(6)?,
    })
}

pub(super) fn held_event(row: &Row<'_>) -> Sql<HeldEvent> {
    Ok(HeldEvent {
        subscription: row.get(0)?,
        aggregate: aggregate(row)?,
        pos: row.get(3)?,
        event: event_id(row, 4)?,
        edited: row.get(5)?,
        replayed: row.get(6)?,
    })
}

pub(super) fn dead_event(row: &Row<'_>) -> Sql<DeadEvent> {
    Ok(DeadEvent {
        subscription: row.get(0)?,
        event: event_id(row, 1)?,
        pos: row.get(2)?,
        dead_at: row::time(row, 3)?,
        deliveries: row.get(4)?,
        why: row.get(5)?,
        skipped: row.get(6)?,
        edited: row.get(7)?,
    })
}

pub(super) fn event_work(row: &Row<'_>) -> Sql<EventWork> {
    let JobId(work_id) = row::job_id(row, 3)?;
    Ok(EventWork {
        event: event_id(row, 0)?,
        subscription: row.get(1)?,
        work: row.get(2)?,
        work_id,
        started_at: row::time(row, 4)?,
    })
}

pub(super) fn change_source(row: &Row<'_>) -> Sql<ChangeSource> {
    Ok(ChangeSource { what: row.get(0)?, name: row.get(1)?, subscription: row.get(2)? })
}

fn aggregate(row: &Row<'_>) -> Sql<Aggregate> {
    Ok(Aggregate { kind: row.get(1)?, id: row.get(2)? })
}

fn event_id(row: &Row<'_>, at: usize) -> Sql<EventId> {
    let JobId(id) = row::job_id(row, at)?;
    Ok(EventId(id))
}
