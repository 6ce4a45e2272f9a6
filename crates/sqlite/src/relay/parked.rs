//! Parked events: due deliveries and their outcomes.

use std::time::Duration;

use milepost_core::event::{
    Aggregate, DueAggregate, DueEvents, Failure as Undeliverable, PageSize, Publisher, Retried, Undelivered,
};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::now_ms;
use crate::error::Failure;
use crate::event::read_event;
use crate::row;

/// The maximum number of events returned at once of an aggregate that was parked only because it waits behind a failed event.
const BEHIND_MAX: i64 = 100;
/// The only slot.
const SLOT: i16 = 0;

pub(super) fn of(conn: &Connection, subscription: &str) -> Result<Vec<Aggregate>, Failure> {
    let mut find = conn.prepare_cached(sql!("relay/parked_of"))?;
    let parked =
        find.query_map([subscription], |row| Ok(Aggregate { kind: row.get(0)?, id: row.get(1)? }))?;
    Ok(parked.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn due(
    conn: &Connection,
    publisher: &Publisher,
    aggregates_max: u32,
    size: PageSize,
) -> Result<DueEvents, Failure> {
    let (name, now) = (&publisher.subscription, now_ms());
    let mut due = DueEvents::default();
    let Some(token) = held_token(conn, publisher)? else { return Ok(due) };
    let mut find = conn.prepare_cached(sql!("relay/due"))?;
    let mut rows = find.query((name, now, aggregates_max))?;
    let (mut events_left, mut bytes) = (size.events_max, 0);
    while let Some(row) = rows.next()?.filter(|_| events_left > 0 && bytes < size.bytes_max) {
        let aggregate = Aggregate { kind: row.get(0)?, id: row.get(1)? };
        let deliveries: u32 = row.get(2)?;
        let due_at = row::time(row, 3)?;
        let many = if deliveries > 0 { 1 } else { BEHIND_MAX };
        let mut find = conn.prepare_cached(sql!("relay/due_events"))?;
        let mut found = find.query_map((name, &aggregate.kind, &aggregate.id, many), |row| {
            Ok((read_event(row)?.event, row.get::<_, bool>(9)?))
        })?;
        let (mut events, mut replayed) = (Vec::new(), Vec::new());
        while events_left > 0
            && bytes < size.bytes_max
            && let Some(found) = found.next()
        {
            let (event, is_replayed) = found?;
            replayed.extend(is_replayed.then_some(event.id));
            bytes += event.payload.get().len();
            events_left -= 1;
            events.push(event);
        }
        if !events.is_empty() {
            due.aggregates.push(DueAggregate {
                aggregate,
                slot: SLOT,
                token,
                deliveries,
                due_at,
                events,
                replayed,
            });
        }
    }
    if due.aggregates.is_empty() {
        let next_ms: Option<i64> =
            conn.prepare_cached(sql!("relay/next_due"))?.query_row([name], |row| row.get(0))?;
        due.next_in = next_ms.map(|ms| Duration::from_millis((ms - now).max(0).unsigned_abs()));
    }
    Ok(due)
}

/// Returns the token with which the publisher owns the subscription, if it does.
pub(super) fn held_token(conn: &Connection, publisher: &Publisher) -> Result<Option<i64>, Failure> {
    let mut find = conn.prepare_cached(sql!("relay/subscription"))?;
    let found = find.query_row([&publisher.subscription], |row| {
        let owner: Option<Vec<u8>> = row.get(1)?;
        Ok((owner.as_deref() == Some(publisher.id.0.as_bytes())).then_some(row.get(2)?))
    });
    Ok(found.optional()?.flatten())
}

pub(super) fn settle(
    conn: &Connection,
    subscription: &str,
    retried: Vec<Retried>,
) -> Result<Vec<Aggregate>, Failure> {
    let mut drained = Vec::new();
    let mut find = conn.prepare_cached(sql!("relay/subscription"))?;
    let held: Option<i64> = find.query_row([subscription], |row| row.get(2)).optional()?;
    for of in retried.into_iter().filter(|of| Some(of.token) == held) {
        if settle_one(conn, subscription, &of)? {
            drained.push(of.aggregate);
        }
    }
    Ok(drained)
}

/// Stores the outcome for one aggregate; returns whether none of its events is left.
fn settle_one(conn: &Connection, subscription: &str, of: &Retried) -> Result<bool, Failure> {
    let (Aggregate { kind, id }, now) = (&of.aggregate, now_ms());
    let due_ms: Option<Option<i64>> = conn
        .prepare_cached(sql!("relay/due_at"))?
        .query_row((subscription, kind, id), |row| row.get(0))
        .optional()?;
    if due_ms != Some(Some(of.due_at.as_millisecond())) {
        return settle_changed(conn, subscription, of);
    }
    let mut unpark = conn.prepare_cached(sql!("relay/unpark_event"))?;
    for event in &of.delivered {
        unpark.execute((subscription, kind, id, event.0.as_bytes()))?;
    }
    let mut head = (0, Some(now), None);
    for failure in &of.failures {
        match failure.then {
            Undelivered::Skip | Undelivered::DeadLetter => {
                give_up(conn, subscription, failure)?;
                unpark.execute((subscription, kind, id, failure.event.0.as_bytes()))?;
            }
            Undelivered::Retry(wait) => {
                head = (failure.deliveries, Some(after(now, wait)), Some(&failure.why));
            }
            Undelivered::Halt => head = (failure.deliveries, None, Some(&failure.why)),
        }
    }
    if conn.prepare_cached(sql!("relay/unpark_empty"))?.execute((subscription, kind, id))? == 1 {
        return Ok(true);
    }
    let (deliveries, due_ms, why) = head;
    let put_off = (subscription, kind, id, deliveries, due_ms, why);
    // No row: an operator has settled it since.
    Ok(conn.prepare_cached(sql!("relay/put_off"))?.execute(put_off)? == 0)
}

/// Stores the outcome for an aggregate that an operator has changed since its events were read: what the operator wanted happens next. Returns
/// whether none of its events is left.
fn settle_changed(conn: &Connection, subscription: &str, of: &Retried) -> Result<bool, Failure> {
    let Aggregate { kind, id } = &of.aggregate;
    let mut unpark = conn.prepare_cached(sql!("relay/unpark_original"))?;
    for event in &of.delivered {
        unpark.execute((subscription, kind, id, event.0.as_bytes()))?;
    }
    conn.prepare_cached(sql!("relay/unpark_empty"))?.execute((subscription, kind, id))?;
    let mut find = conn.prepare_cached(sql!("relay/due_at"))?;
    Ok(find.query_row((subscription, kind, id), |_| Ok(())).optional()?.is_none())
}

/// Dead-letters an event.
pub(super) fn give_up(conn: &Connection, subscription: &str, failure: &Undeliverable) -> Result<(), Failure> {
    let is_skipped = failure.then == Undelivered::Skip;
    let given_up =
        (subscription, failure.event.0.as_bytes(), now_ms(), failure.deliveries, &failure.why, is_skipped);
    conn.prepare_cached(sql!("relay/give_up"))?.execute(given_up)?;
    Ok(())
}

/// Returns the time `wait` after `now_ms`.
pub(super) fn after(now_ms: i64, wait: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
