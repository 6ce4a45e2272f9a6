//! Subscriptions: listings for operators, and operations on them.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::audit::AuditedAction;
use milepost_core::error::StoreError;
use milepost_core::event::listing::{AggregatePlace, DeadPlace};
use milepost_core::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, PublisherView, Replay, SubscriptionView,
};
use milepost_core::event::{Aggregate, RelayError};
use milepost_core::ident::EventId;
use milepost_core::port::{StoreResult, SubscriptionStore};
use milepost_core::sql;
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::{PgDatabaseError, PgRow};
use uuid::Uuid;

use super::error::relay_error;
use crate::error::database_error;
use crate::event::{after_place, read_event};
use crate::row::{Decoded, named, value};
use crate::session::{Repeatable, Session};
use crate::store::PostgresStore;

/// SQLSTATE of an aggregate that is not parked.
const NOT_PARKED: &str = "MP022";
/// SQLSTATE of an event that is not the first one of a parked aggregate.
const NOT_FIRST: &str = "MP026";
/// SQLSTATE of an event that is not a dead letter.
const NOT_DEAD: &str = "MP023";
/// SQLSTATE of a replay that would start before the retained log.
const TOO_OLD: &str = "MP024";
/// SQLSTATE of an operation that is not possible while a publisher is active.
const IN_USE: &str = "MP025";

#[async_trait]
impl SubscriptionStore for PostgresStore {
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("relay/publishers"))).await;
        let mut publishers: HashMap<String, Vec<PublisherView>> = HashMap::new();
        for (subscription, publisher) in self.listed("subscriptions", rows, publisher_view)? {
            publishers.entry(subscription).or_default().push(publisher);
        }
        let rows = self.inner.calm.rows(sqlx::query(sql!("relay/subscriptions"))).await;
        let mut subscriptions = self.listed("subscriptions", rows, subscription_view)?;
        for subscription in &mut subscriptions {
            subscription.publishers = publishers.remove(&subscription.name).unwrap_or_default();
        }
        Ok(subscriptions)
    }

    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool> {
        let (verb, action) = ("resume_subscription", AuditedAction::resume_subscription(subscription));
        let query = sqlx::query(sql!("relay/resume")).bind(subscription.to_owned());
        let query = Repeatable::of(query);
        let resumed = self.act(&self.inner.intake, &action, async |session| session.row(query).await).await;
        let was_paused = resumed.and_then(|row| row.map(|row| row.try_get::<bool, _>(0)).transpose());
        let was_paused = was_paused.map_err(|e| self.fail(verb, e))?;
        Ok(was_paused.ok_or_else(|| RelayError::NoSuchSubscription(subscription.to_owned()))?)
    }

    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool> {
        let (verb, action) = ("remove_subscription", AuditedAction::remove_subscription(subscription));
        let removed = self.change_subscription(verb, &action, sql!("relay/remove"), subscription).await?;
        self.leave_changes().await.map_err(|e| self.fail(verb, e))?;
        Ok(removed)
    }

    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>> {
        let query = sqlx::query(sql!("relay/parked")).bind(subscription.map(str::to_owned));
        let query = after_place(query, after).bind(i64::from(limit));
        self.listed("parked", self.inner.calm.rows(query).await, parked_view)
    }

    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        event: Option<EventId>,
        verb: &ParkedVerb,
    ) -> StoreResult<()> {
        let (name, payload) = match verb {
            ParkedVerb::Retry => ("retry", None),
            ParkedVerb::Skip => ("skip", None),
            ParkedVerb::Edit(payload) => ("edit", Some(payload.clone())),
        };
        let query = sqlx::query(sql!("relay/change_parked"))
            .bind(subscription.to_owned())
            .bind(aggregate.kind.clone())
            .bind(aggregate.id.clone())
            .bind(name)
            .bind(payload)
            .bind(event.map(|event| event.0));
        let action = AuditedAction::change_parked(subscription, aggregate, verb);
        let query = Repeatable::of(query);
        let changed =
            self.act(&self.inner.intake, &action, async |session| session.execute(query).await).await;
        let (of, aggregate) = (subscription.to_owned(), aggregate.clone());
        changed.map(drop).map_err(|e| match (code(&e), event) {
            (Some(NOT_PARKED), _) => RelayError::NotParked { subscription: of, aggregate }.into(),
            (Some(NOT_FIRST), Some(event)) => {
                RelayError::NotFirst { subscription: of, aggregate, event }.into()
            }
            _ => self.relay_fail("change_parked", subscription, e),
        })
    }

    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>> {
        let query = sqlx::query(sql!("relay/dead"))
            .bind(subscription.map(str::to_owned))
            .bind(before.map(|place| jiff_sqlx::Timestamp::from(place.at)))
            .bind(before.map(|place| place.event.0))
            .bind(before.map(|place| place.subscription.clone()))
            .bind(i64::from(limit));
        self.listed("dead_events", self.inner.calm.rows(query).await, dead_view)
    }

    async fn deliveries(&self, events: &[EventId]) -> StoreResult<Vec<Delivery>> {
        let ids: Vec<Uuid> = events.iter().map(|event| event.0).collect();
        let query = sqlx::query(sql!("relay/deliveries")).bind(ids);
        self.listed("deliveries", self.inner.calm.rows(query).await, delivery)
    }

    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()> {
        let name = match verb {
            DeadVerb::Retry => "retry",
            DeadVerb::Drop => "drop",
        };
        let query =
            sqlx::query(sql!("relay/change_dead")).bind(subscription.to_owned()).bind(event.0).bind(name);
        let action = AuditedAction::change_dead(subscription, event, verb);
        let query = Repeatable::of(query);
        let changed =
            self.act(&self.inner.intake, &action, async |session| session.execute(query).await).await;
        changed.map(drop).map_err(|e| match code(&e) {
            Some(NOT_DEAD) => RelayError::NotDead { subscription: subscription.to_owned(), event }.into(),
            _ => self.relay_fail("change_dead", subscription, e),
        })
    }

    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64> {
        let (of, from, since) = match replay {
            Replay::Aggregate { aggregate, from } => (Some(aggregate), Some(*from), None),
            Replay::Since(since) => (None, None, Some(jiff_sqlx::Timestamp::from(*since))),
        };
        let query = sqlx::query(sql!("relay/replay"))
            .bind(subscription.to_owned())
            .bind(of.map(|aggregate| aggregate.kind.clone()))
            .bind(of.map(|aggregate| aggregate.id.clone()))
            .bind(from)
            .bind(since);
        let query = Repeatable::of(query);
        let replay = async |session: &mut Session<'_>| session.row(query).await.and_then(value::<i64>);
        let tell = |events: &i64| (*events > 0).then(|| json!({ "events": events }));
        let action = AuditedAction::replay(subscription);
        let again = self.act_telling(&self.inner.intake, &action, replay, tell).await;
        again.map(i64::unsigned_abs).map_err(|e| match (of, code(&e)) {
            (Some(aggregate), Some(TOO_OLD)) => too_old(aggregate, &e).into(),
            _ => self.relay_fail("replay", subscription, e),
        })
    }

    async fn reseed(&self) -> StoreResult<u64> {
        let query = sqlx::query(sql!("relay/reseed"));
        let query = Repeatable::of(query);
        let reseed = async |session: &mut Session<'_>| session.row(query).await.and_then(value::<i64>);
        let tell = |changed: &i64| (*changed > 0).then(|| json!({ "subscriptions": changed }));
        let changed = self.act_telling(&self.inner.calm, &AuditedAction::reseed(), reseed, tell).await;
        changed.map(i64::unsigned_abs).map_err(|e| match (code(&e), database_error(&e)) {
            (Some(IN_USE), Some(database)) => RelayError::InUse(database.message().to_owned()).into(),
            _ => self.fail("reseed", e),
        })
    }

    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>> {
        let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let query = sqlx::query(sql!("relay/prune_log")).bind(keep_ms);
        let query = Repeatable::of(query);
        let prune = async |session: &mut Session<'_>| session.row(query).await.and_then(value::<Option<i64>>);
        let tell = |pruned: &Option<i64>| {
            pruned.filter(|&events| events > 0).map(|events| json!({ "events": events }))
        };
        let pruned = self.act_telling(&self.inner.hot, &AuditedAction::prune_log(), prune, tell).await;
        pruned.map(|pruned| pruned.map(i64::unsigned_abs)).map_err(|e| self.fail("prune_log", e))
    }
}

impl PostgresStore {
    async fn change_subscription(
        &self,
        verb: &'static str,
        action: &AuditedAction,
        sql: &'static str,
        subscription: &str,
    ) -> StoreResult<bool> {
        let query = sqlx::query(sql).bind(subscription.to_owned());
        let query = Repeatable::of(query);
        let changed =
            self.act(&self.inner.intake, action, async |session| session.execute(query).await).await;
        changed.map(|changed| changed > 0).map_err(|e| self.fail(verb, e))
    }

    fn relay_fail(&self, verb: &'static str, subscription: &str, error: sqlx::Error) -> StoreError {
        relay_error(&self.inner.place, verb, subscription, error)
    }
}

fn code(error: &sqlx::Error) -> Option<&str> {
    database_error(error).map(PgDatabaseError::code)
}

/// Returns the error for such a replay; the detail contains the first sequence number in the log.
fn too_old(aggregate: &Aggregate, error: &sqlx::Error) -> RelayError {
    let first = database_error(error).and_then(|e| e.detail()?.parse().ok());
    match first {
        Some(first) => RelayError::BeforeRetention { aggregate: aggregate.clone(), first },
        None => RelayError::NoEvents(aggregate.clone()),
    }
}

fn time(row: &PgRow, name: &str) -> Decoded<Timestamp> {
    Ok(row.try_get::<jiff_sqlx::Timestamp, _>(name)?.to_jiff())
}

fn time_if_any(row: &PgRow, name: &str) -> Decoded<Option<Timestamp>> {
    Ok(row.try_get::<Option<jiff_sqlx::Timestamp>, _>(name)?.map(jiff_sqlx::Timestamp::to_jiff))
}

fn count(row: &PgRow, name: &str) -> Decoded<u32> {
    Ok(u32::try_from(row.try_get::<i32, _>(name)?).unwrap_or(0))
}

fn subscription_view(row: &PgRow) -> Decoded<SubscriptionView> {
    Ok(SubscriptionView {
        name: row.try_get("name")?,
        made_at: time(row, "made_at")?,
        paused_at: time_if_any(row, "paused_at")?,
        paused_why: row.try_get("paused_why")?,
        reseed_needed: row.try_get("reseed_needed")?,
        backlog: row.try_get("backlog")?,
        oldest_at: time_if_any(row, "oldest_at")?,
        parked_aggregates: row.try_get("parked_aggregates")?,
        halted_aggregates: row.try_get("halted_aggregates")?,
        parked_why: row.try_get("parked_why")?,
        dead: row.try_get("dead")?,
        publishers: Vec::new(),
    })
}

fn publisher_view(row: &PgRow) -> Decoded<(String, PublisherView)> {
    let publisher = PublisherView {
        label: row.try_get("label")?,
        started_at: time(row, "started_at")?,
        lease_until: time(row, "lease_until")?,
        slots: row.try_get("slots")?,
        token: row.try_get("token")?,
        held_since: time_if_any(row, "held_since")?,
        down_since: time_if_any(row, "down_since")?,
        down_why: row.try_get("down_why")?,
    };
    Ok((row.try_get("subscription")?, publisher))
}

fn parked_view(row: &PgRow) -> Decoded<ParkedView> {
    Ok(ParkedView {
        subscription: row.try_get("subscription")?,
        parked_at: time(row, "parked_at")?,
        deliveries: count(row, "deliveries")?,
        next_delivery_at: time_if_any(row, "next_delivery_at")?,
        why: row.try_get("why")?,
        events: row.try_get("events")?,
        first: read_event(row)?,
        edited: row.try_get("edited")?,
    })
}

fn delivery(row: &PgRow) -> Decoded<Delivery> {
    let event = EventId(row.try_get("event_id")?);
    Ok(Delivery { event, subscription: row.try_get("subscription")?, state: named(row, "state")? })
}

fn dead_view(row: &PgRow) -> Decoded<DeadView> {
    Ok(DeadView {
        subscription: row.try_get("subscription")?,
        dead_at: time(row, "dead_at")?,
        deliveries: count(row, "deliveries")?,
        why: row.try_get("why")?,
        skipped: row.try_get("skipped")?,
        event: read_event(row)?,
    })
}
