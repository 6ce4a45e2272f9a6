//! Insertion of rows of inboxes.

use milepost_core::duration::whole_ms;
use milepost_core::event::Event;
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::DeadLetter;
use milepost_core::relocation::rows::{Checkpoint, InboxTally, ParkedEvent, ProcessedEvent};
use milepost_core::sql;

use super::{each, time};
use crate::event::headers_text;
use crate::session::Query;

pub(super) fn consumers(rows: &[Consumer]) -> Query {
    sqlx::query(sql!("move/inbox_consumer"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| whole_ms(r.gap_wait)))
        .bind(each(rows, |r| r.parked_max.cast_signed()))
        .bind(each(rows, |r| r.gap_policy.as_str()))
        .bind(each(rows, |r| r.begins_anywhere))
}

pub(super) fn processed_events(rows: &[ProcessedEvent]) -> Query {
    sqlx::query(sql!("move/processed_event"))
        .bind(each(rows, |r| r.consumer.as_str()))
        .bind(each(rows, |r| r.event.0))
        .bind(each(rows, |r| time(r.at)))
}

pub(super) fn checkpoints(rows: &[Checkpoint]) -> Query {
    sqlx::query(sql!("move/aggregate_checkpoint"))
        .bind(each(rows, |r| r.consumer.as_str()))
        .bind(each(rows, |r| r.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.aggregate.id.as_str()))
        .bind(each(rows, |r| r.last))
        .bind(each(rows, |r| r.parked))
        .bind(each(rows, |r| r.dead))
        .bind(each(rows, |r| r.ready))
        .bind(each(rows, |r| r.gives_up_at.map(time)))
}

pub(super) fn parked_events(rows: &[ParkedEvent]) -> Query {
    sqlx::query(sql!("move/inbox_parked"))
        .bind(each(rows, |r| r.consumer.as_str()))
        .bind(each(rows, |r| r.event.id.0))
        .bind(each(rows, |r| r.event.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.event.aggregate.id.as_str()))
        .bind(each(rows, |r| r.event.sequence))
        .bind(each(rows, |r| r.event.event_type.as_str()))
        .bind(each(rows, |r| headers_text(&r.event.headers)))
        .bind(each(rows, |r| r.event.payload.get()))
        .bind(each(rows, |r| time(r.event.emitted_at)))
        .bind(each(rows, |r| time(r.parked_at)))
}

pub(super) fn letters(rows: &[DeadLetter]) -> Query {
    sqlx::query(sql!("move/inbox_dead"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| r.consumer.as_str()))
        .bind(each(rows, |r| r.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.aggregate.id.as_str()))
        .bind(each(rows, |r| *r.sequences.start()))
        .bind(each(rows, |r| *r.sequences.end()))
        .bind(each(rows, |r| r.reason.as_str()))
        .bind(each(rows, |r| r.why.as_str()))
        .bind(of_event(rows, |event| event.id.0))
        .bind(each(rows, |r| r.event.as_ref().and_then(|event| headers_text(&event.headers))))
        .bind(of_event(rows, |event| event.payload.get()))
        .bind(of_event(rows, |event| event.event_type.as_str()))
        .bind(of_event(rows, |event| time(event.emitted_at)))
        .bind(each(rows, |r| time(r.dead_at)))
}

/// Collects a column that has a value only if the event arrived.
fn of_event<'a, T>(rows: &'a [DeadLetter], value: fn(&'a Event) -> T) -> Vec<Option<T>> {
    each(rows, |r| r.event.as_ref().map(value))
}

pub(super) fn tallies(rows: &[InboxTally]) -> Query {
    sqlx::query(sql!("move/inbox_tally"))
        .bind(each(rows, |r| r.consumer.as_str()))
        .bind(each(rows, |r| r.duplicates))
}
