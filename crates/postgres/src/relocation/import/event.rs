//! Insertion of rows of events.

use milepost_core::event::listing::LoggedEvent;
use milepost_core::relocation::rows::Head;
use milepost_core::sql;

use super::{each, time};
use crate::event::headers_text;
use crate::session::Query;

pub(super) fn heads(rows: &[Head]) -> Query {
    sqlx::query(sql!("move/aggregate"))
        .bind(each(rows, |r| r.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.aggregate.id.as_str()))
        .bind(each(rows, |r| r.last))
}

pub(super) fn events(rows: &[LoggedEvent]) -> Query {
    sqlx::query(sql!("move/event"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.event.id.0))
        .bind(each(rows, |r| r.event.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.event.aggregate.id.as_str()))
        .bind(each(rows, |r| r.event.sequence))
        .bind(each(rows, |r| time(r.event.emitted_at)))
        .bind(each(rows, |r| r.event.event_type.as_str()))
        .bind(each(rows, |r| headers_text(&r.event.headers)))
        .bind(each(rows, |r| r.event.payload.get()))
}
