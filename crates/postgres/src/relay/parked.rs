//! Parked events: which are due, and the results of retrying them.

use std::time::Duration;

use jiff_sqlx::ToSqlx;
use milepost_core::event::{Aggregate, DueAggregate, DueEvents, PageSize, Publisher, Retried};
use milepost_core::sql;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::outcome::{abandoned, wait_ms};
use crate::event::read_event_with;
use crate::row::{self, Decoded, value};
use crate::store::PostgresStore;

/// Maximum number of an aggregate's events, behind the parked one, that are returned in one call.
const BEHIND_MAX: i64 = 100;

impl PostgresStore {
    pub(super) async fn due_events(
        &self,
        publisher: &Publisher,
        aggregates_max: u32,
        size: PageSize,
    ) -> Decoded<DueEvents> {
        let query = sqlx::query(sql!("relay/due"))
            .bind(publisher.subscription.clone())
            .bind(publisher.id.0)
            .bind(i64::from(aggregates_max))
            .bind(BEHIND_MAX)
            .bind(i64::try_from(size.events_max).unwrap_or(i64::MAX));
        let rows = self.inner.hot.rows(query).await?;
        let mut payloads = self.payloads_of(&rows, size).await?.into_iter();
        let mut due = DueEvents::default();
        for row in &rows {
            let payload = match row.try_get::<Option<String>, _>("edited")? {
                Some(edited) => edited,
                None => match payloads.next() {
                    Some(payload) => payload,
                    None => break,
                },
            };
            let event = read_event_with(row, payload)?;
            let replayed = row.try_get::<bool, _>("replayed")?.then_some(event.id);
            match due.aggregates.last_mut() {
                Some(last) if last.aggregate == event.aggregate => {
                    last.events.push(event);
                    last.replayed.extend(replayed);
                }
                _ => due.aggregates.push(DueAggregate {
                    aggregate: event.aggregate.clone(),
                    slot: row.try_get("slot")?,
                    token: row.try_get("token")?,
                    deliveries: u32::try_from(row.try_get::<i32, _>("deliveries")?).unwrap_or(0),
                    due_at: row::time(row, "next_delivery_at")?.ok_or(sqlx::Error::RowNotFound)?,
                    events: vec![event],
                    replayed: replayed.into_iter().collect(),
                }),
            }
        }
        if due.aggregates.is_empty() {
            let query =
                sqlx::query(sql!("relay/next_due")).bind(publisher.subscription.clone()).bind(publisher.id.0);
            let next_ms: Option<i64> = self.inner.hot.row(query).await.and_then(value)?;
            due.next_in = next_ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        }
        Ok(due)
    }

    /// Returns the payloads of the events that are not edited, in their order, until they have the bytes of a page.
    async fn payloads_of(&self, rows: &[PgRow], size: PageSize) -> Decoded<Vec<String>> {
        let (mut slots, mut positions) = (Vec::<i16>::new(), Vec::<i64>::new());
        for row in rows {
            if row.try_get::<Option<&str>, _>("edited")?.is_none() {
                slots.push(row.try_get("slot")?);
                positions.push(row.try_get("pos")?);
            }
        }
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let bytes_max = i64::try_from(size.bytes_max).unwrap_or(i64::MAX);
        let query = sqlx::query(sql!("relay/payloads")).bind(slots).bind(positions).bind(bytes_max);
        let rows = self.inner.hot.rows(query).await?;
        rows.iter().map(|row| row.try_get("payload")).collect()
    }

    pub(super) async fn settle_each(
        &self,
        publisher: &Publisher,
        retried: &[Retried],
    ) -> Decoded<Vec<Aggregate>> {
        let mut drained = Vec::new();
        for of in retried {
            let head = of.failures.iter().find_map(|failure| Some((failure, wait_ms(failure.then)?)));
            let given_up: Vec<Value> = of.failures.iter().filter_map(abandoned).collect();
            let query = sqlx::query(sql!("relay/settle_parked"))
                .bind(publisher.subscription.clone())
                .bind(publisher.id.0)
                .bind(of.slot)
                .bind(of.token)
                .bind(of.aggregate.kind.clone())
                .bind(of.aggregate.id.clone())
                .bind(of.delivered.iter().map(|id| id.0).collect::<Vec<_>>())
                .bind(Value::Array(given_up).to_string())
                .bind(head.as_ref().map(|(failure, _)| i32::try_from(failure.deliveries).unwrap_or(i32::MAX)))
                .bind(head.as_ref().and_then(|(_, ms)| *ms).map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)))
                .bind(head.map(|(failure, _)| failure.why.clone()))
                .bind(of.due_at.to_sqlx());
            if self.inner.hot.row(query).await.and_then(value)? {
                drained.push(of.aggregate.clone());
            }
        }
        Ok(drained)
    }
}
