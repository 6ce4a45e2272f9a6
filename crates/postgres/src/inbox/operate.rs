//! Inbox operations of operators and of consumers' runners.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::duration::whole_ms;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::AggregatePlace;
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};
use milepost_core::port::{InboxStore, StoreResult};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::take::expectation;
use super::{inbox_error, kept_event};
use crate::event::after_place;
use crate::row::{Decoded, count, named};
use crate::session::{Query, Repeatable};
use crate::store::PostgresStore;

#[async_trait]
impl InboxStore for PostgresStore {
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()> {
        consumer.check()?;
        let query = sqlx::query(sql!("inbox/put_consumer"))
            .bind(consumer.name.clone())
            .bind(whole_ms(consumer.gap_wait))
            .bind(i32::try_from(consumer.parked_max).unwrap_or(i32::MAX))
            .bind(consumer.gap_policy.as_str())
            .bind(consumer.begins_anywhere);
        let audited = AuditedAction::put_consumer(&consumer.name);
        self.change_inbox("put_consumer", &audited, query, |_| Ok(())).await.map(drop)
    }

    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>> {
        self.listed("consumers", self.inner.calm.rows(sqlx::query(sql!("inbox/consumers"))).await, view)
    }

    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool> {
        let query = expectation(consumer, aggregate, sequence)?;
        let audited = AuditedAction::expect_from(consumer, aggregate);
        let changed = self.change_inbox("expect_from", &audited, query, |row| row.try_get(0)).await?;
        Ok(changed.into_iter().any(|changed| changed))
    }

    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>> {
        let query = sqlx::query(sql!("inbox/ready")).bind(consumer.to_owned()).bind(rows_max(limit));
        self.ask_inbox("inbox_ready", query, aggregate).await
    }

    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>> {
        let query = sqlx::query(sql!("inbox/gaps")).bind(consumer.map(str::to_owned));
        let query = after_place(query, after).bind(i64::from(limit));
        self.listed("gaps", self.inner.calm.rows(query).await, gap)
    }

    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp> {
        let query =
            sqlx::query(sql!("inbox/give_up")).bind(consumer.map(str::to_owned)).bind(rows_max(limit));
        let given_up = self.ask_inbox("give_up_gaps", query, given_up).await?;
        Ok(given_up.into_iter().next().unwrap_or_default())
    }

    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>> {
        let query = sqlx::query(sql!("inbox/dead"))
            .bind(filter.consumer.clone())
            .bind(filter.before.map_or(i64::MAX, |before| before.0))
            .bind(i64::from(filter.limit));
        self.listed("dead_letters", self.inner.calm.rows(query).await, dead_letter)
    }

    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        let audited = AuditedAction::retry_letters(letters);
        self.change_letters("retry_dead", &audited, sql!("inbox/retry"), letters).await
    }

    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        let audited = AuditedAction::drop_letters(letters);
        self.change_letters("drop_dead", &audited, sql!("inbox/drop"), letters).await
    }
}

impl PostgresStore {
    /// Returns the rows of a verb that may wait for consumers.
    async fn ask_inbox<T>(
        &self,
        verb: &'static str,
        query: Query,
        read: fn(&PgRow) -> Decoded<T>,
    ) -> StoreResult<Vec<T>> {
        let rows = self.inner.intake.rows(query).await;
        rows.and_then(|rows| rows.iter().map(read).collect())
            .map_err(|e| inbox_error(&self.inner.place, verb, e))
    }

    /// The same, for an operator's action that changes something.
    async fn change_inbox<T>(
        &self,
        verb: &'static str,
        audited: &AuditedAction,
        query: Query,
        read: fn(&PgRow) -> Decoded<T>,
    ) -> StoreResult<Vec<T>> {
        let query = Repeatable::of(query);
        let rows = self.act(&self.inner.intake, audited, async |session| session.rows(query).await).await;
        rows.and_then(|rows| rows.iter().map(read).collect())
            .map_err(|e| inbox_error(&self.inner.place, verb, e))
    }

    async fn change_letters(
        &self,
        verb: &'static str,
        audited: &AuditedAction,
        sql: &'static str,
        letters: &[LetterId],
    ) -> StoreResult<u64> {
        let letters: Vec<i64> = letters.iter().map(|letter| letter.0).collect();
        let query = sqlx::query(sql).bind(letters);
        let changed = self
            .change_inbox(verb, audited, query, |row| Ok(row.try_get::<i64, _>(0)?.unsigned_abs()))
            .await?;
        Ok(changed.into_iter().sum())
    }
}

fn rows_max(limit: u32) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}

fn aggregate(row: &PgRow) -> Decoded<Aggregate> {
    Ok(Aggregate { kind: row.try_get("aggregate_type")?, id: row.try_get("aggregate_id")? })
}

fn gap(row: &PgRow) -> Decoded<Gap> {
    Ok(Gap {
        consumer: row.try_get("consumer")?,
        aggregate: aggregate(row)?,
        missing: row.try_get("missing")?,
        parked: count(row, "parked")?,
        gives_up_at: row.try_get::<jiff_sqlx::Timestamp, _>("gives_up_at")?.to_jiff(),
    })
}

fn given_up(row: &PgRow) -> Decoded<GivenUp> {
    Ok(GivenUp { gaps: total(row, "gaps")?, letters: total(row, "letters")? })
}

fn view(row: &PgRow) -> Decoded<ConsumerView> {
    Ok(ConsumerView {
        consumer: Consumer {
            name: row.try_get("consumer")?,
            gap_wait: Duration::from_millis(total(row, "gap_wait_ms")?),
            parked_max: count(row, "parked_max")?,
            gap_policy: named(row, "gap_policy")?,
            begins_anywhere: row.try_get("begins_anywhere")?,
        },
        aggregates: total(row, "aggregates")?,
        parked: total(row, "parked")?,
        dead: total(row, "dead")?,
        duplicates: total(row, "duplicates")?,
    })
}

fn dead_letter(row: &PgRow) -> Decoded<DeadLetter> {
    let aggregate = aggregate(row)?;
    let came = row.try_get::<Option<uuid::Uuid>, _>("event_id")?.is_some();
    Ok(DeadLetter {
        id: LetterId(row.try_get("pos")?),
        consumer: row.try_get("consumer")?,
        sequences: row.try_get("aggregate_seq")?..=row.try_get("seq_to")?,
        reason: named(row, "reason")?,
        why: row.try_get("why")?,
        event: came.then(|| kept_event(row, aggregate.clone())).transpose()?,
        dead_at: row.try_get::<jiff_sqlx::Timestamp, _>("dead_at")?.to_jiff(),
        aggregate,
    })
}

fn total(row: &PgRow, column: &str) -> Decoded<u64> {
    Ok(row.try_get::<i64, _>(column)?.unsigned_abs())
}
