//! Insertion of rows of subscriptions.

use milepost_core::relocation::rows::{
    ChangeSource, DeadEvent, EventWork, HeldEvent, ParkedAggregate, Subscription,
};
use milepost_core::sql;
use milepost_core::text::without_nul;

use super::{each, time};
use crate::session::Query;

pub(super) fn subscriptions(rows: &[Subscription]) -> Query {
    sqlx::query(sql!("move/subscription"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| time(r.made_at)))
        .bind(each(rows, |r| r.paused.as_ref().map(|pause| time(pause.at))))
        .bind(each(rows, |r| r.paused.as_ref().map(|pause| without_nul(&pause.why))))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.advanced_at.map(time)))
        .bind(each(rows, |r| r.token))
}

pub(super) fn parked_aggregates(rows: &[ParkedAggregate]) -> Query {
    sqlx::query(sql!("move/parked_aggregate"))
        .bind(each(rows, |r| r.subscription.as_str()))
        .bind(each(rows, |r| r.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.aggregate.id.as_str()))
        .bind(each(rows, |r| time(r.parked_at)))
        .bind(each(rows, |r| r.deliveries))
        .bind(each(rows, |r| r.next_delivery_at.map(time)))
        .bind(each(rows, |r| without_nul(&r.why)))
}

pub(super) fn held_events(rows: &[HeldEvent]) -> Query {
    sqlx::query(sql!("move/parked_event"))
        .bind(each(rows, |r| r.subscription.as_str()))
        .bind(each(rows, |r| r.aggregate.kind.as_str()))
        .bind(each(rows, |r| r.aggregate.id.as_str()))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.event.0))
        .bind(each(rows, |r| r.edited.as_deref()))
        .bind(each(rows, |r| r.replayed))
}

pub(super) fn dead_events(rows: &[DeadEvent]) -> Query {
    sqlx::query(sql!("move/dead_event"))
        .bind(each(rows, |r| r.subscription.as_str()))
        .bind(each(rows, |r| r.event.0))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| time(r.dead_at)))
        .bind(each(rows, |r| r.deliveries))
        .bind(each(rows, |r| without_nul(&r.why)))
        .bind(each(rows, |r| r.skipped))
        .bind(each(rows, |r| r.edited.as_deref()))
}

pub(super) fn event_works(rows: &[EventWork]) -> Query {
    sqlx::query(sql!("move/event_work"))
        .bind(each(rows, |r| r.event.0))
        .bind(each(rows, |r| r.subscription.as_str()))
        .bind(each(rows, |r| r.work.as_str()))
        .bind(each(rows, |r| r.work_id))
        .bind(each(rows, |r| time(r.started_at)))
}

pub(super) fn change_sources(rows: &[ChangeSource]) -> Query {
    sqlx::query(sql!("move/change_source"))
        .bind(each(rows, |r| r.what.as_str()))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.subscription.as_str()))
}
