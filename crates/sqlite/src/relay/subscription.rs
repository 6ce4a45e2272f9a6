//! Operators' queries and verbs on subscriptions.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::event::listing::{AggregatePlace, DeadPlace};
use milepost_core::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, PublisherView, Replay, SubscriptionView,
};
use milepost_core::event::{Aggregate, Failure as Undeliverable, RelayError, Undelivered};
use milepost_core::ident::{EventId, JobId};
use milepost_core::port::{StoreResult, SubscriptionStore};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::json;
use uuid::Uuid;

use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::event::{after_place, read_event};
use crate::relay::{changes, parked};
use crate::row::{self, time, word};
use crate::store::SqliteStore;

/// How many events one portion of pruning examines.
const PORTION: i64 = 2_000;

#[async_trait]
impl SubscriptionStore for SqliteStore {
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>> {
        self.read("subscriptions", list).await
    }

    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool> {
        let (action, name) = (AuditedAction::resume_subscription(subscription), subscription.to_owned());
        self.act("resume_subscription", Hint::READY, action, move |tx| {
            check(tx, &name)?;
            Ok(tx.prepare_cached(sql!("relay/resume"))?.execute([name])? == 1)
        })
        .await
    }

    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool> {
        let (action, name) = (AuditedAction::remove_subscription(subscription), subscription.to_owned());
        self.act("remove_subscription", Hint::NONE, action, move |tx| {
            let removed = tx.prepare_cached(sql!("relay/remove"))?.execute([name])?;
            changes::record_wanted(tx)?;
            Ok(removed == 1)
        })
        .await
    }

    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>> {
        let (name, (at_ms, of, kind, id)) = (subscription.map(str::to_owned), after_place(after));
        self.read("parked", move |conn| {
            let mut find = conn.prepare_cached(sql!("relay/parked"))?;
            let parked = find.query_map((name, at_ms, of, kind, id, limit), parked_view)?;
            Ok(parked.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        event: Option<EventId>,
        verb: &ParkedVerb,
    ) -> StoreResult<()> {
        let action = AuditedAction::change_parked(subscription, aggregate, verb);
        let (name, aggregate, verb) = (subscription.to_owned(), aggregate.clone(), verb.clone());
        self.act("change_parked", Hint::READY, action, move |tx| {
            change_parked(tx, &name, aggregate, event, &verb)
        })
        .await
    }

    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>> {
        let (name, before) = (subscription.map(str::to_owned), before.cloned());
        self.read("dead_events", move |conn| {
            let mut find = conn.prepare_cached(sql!("relay/dead"))?;
            // The first page: values before all rows.
            let (at_ms, event, of) = before
                .map_or((i64::MAX, EventId(Uuid::nil()), String::new()), |place| {
                    (place.at.as_millisecond(), place.event, place.subscription)
                });
            let dead = find.query_map((name, at_ms, event.0.as_bytes(), of, limit), dead_view)?;
            Ok(dead.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn deliveries(&self, events: &[EventId]) -> StoreResult<Vec<Delivery>> {
        let events = events.to_vec();
        self.read("deliveries", move |conn| {
            let mut find = conn.prepare_cached(sql!("relay/deliveries"))?;
            let mut all = Vec::new();
            for event in events {
                let found = find.query_map([event.0.as_bytes()], |row| {
                    Ok(Delivery { event, subscription: row.get(1)?, state: word(row, 2)? })
                })?;
                all.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
            }
            Ok(all)
        })
        .await
    }

    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()> {
        let (action, name) = (AuditedAction::change_dead(subscription, event, verb), subscription.to_owned());
        self.act("change_dead", Hint::READY, action, move |tx| change_dead(tx, &name, event, verb)).await
    }

    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64> {
        let (action, name, replay) =
            (AuditedAction::replay(subscription), subscription.to_owned(), replay.clone());
        let tell = |events: &u64| (*events > 0).then(|| json!({ "events": events }));
        self.act_telling("replay", Hint::READY, action, move |tx| again(tx, &name, &replay), tell).await
    }

    async fn reseed(&self) -> StoreResult<u64> {
        // Positions are stored in the file and move with it.
        Ok(0)
    }

    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>> {
        let before_ms = now_ms().saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
        let tell = |pruned: &Option<u64>| {
            pruned.filter(|&events| events > 0).map(|events| json!({ "events": events }))
        };
        self.act_telling(
            "prune_log",
            Hint::NONE,
            AuditedAction::prune_log(),
            move |tx| prune(tx, before_ms),
            tell,
        )
        .await
    }
}

fn list(conn: &Connection) -> Result<Vec<SubscriptionView>, Failure> {
    let mut find = conn.prepare_cached(sql!("relay/subscriptions"))?;
    let all = find.query_map((), |row| {
        Ok(SubscriptionView {
            name: row.get(0)?,
            made_at: time(row, 1)?,
            paused_at: row::time_opt(row, 2)?,
            paused_why: row.get(3)?,
            // Positions in a file are not transaction ids: they hold in every copy.
            reseed_needed: false,
            backlog: row.get(4)?,
            oldest_at: row::time_opt(row, 5)?,
            parked_aggregates: row.get(6)?,
            halted_aggregates: row.get(7)?,
            parked_why: row.get(8)?,
            dead: row.get(9)?,
            publishers: Vec::new(),
        })
    })?;
    let mut all = row::readable("subscriptions", all)?;
    let mut find = conn.prepare_cached(sql!("relay/publishers"))?;
    let publishers = find.query_map([now_ms()], |row| {
        let publisher = PublisherView {
            label: row.get(1)?,
            started_at: time(row, 2)?,
            lease_until: time(row, 3)?,
            down_since: row::time_opt(row, 4)?,
            down_why: row.get(5)?,
            slots: row.get(6)?,
            token: row.get(7)?,
            held_since: row::time_opt(row, 8)?,
        };
        Ok((row.get::<_, String>(0)?, publisher))
    })?;
    for publisher in publishers {
        let (of, publisher) = publisher?;
        if let Some(subscription) = all.iter_mut().find(|subscription| subscription.name == of) {
            subscription.publishers.push(publisher);
        }
    }
    Ok(all)
}

fn parked_view(row: &Row<'_>) -> rusqlite::Result<ParkedView> {
    Ok(ParkedView {
        subscription: row.get(9)?,
        parked_at: time(row, 10)?,
        deliveries: row.get(11)?,
        next_delivery_at: row::time_opt(row, 12)?,
        why: row.get(13)?,
        events: row.get(14)?,
        edited: row.get(15)?,
        first: read_event(row)?.event,
    })
}

fn dead_view(row: &Row<'_>) -> rusqlite::Result<DeadView> {
    Ok(DeadView {
        subscription: row.get(9)?,
        dead_at: time(row, 10)?,
        deliveries: row.get(11)?,
        why: row.get(12)?,
        skipped: row.get(13)?,
        event: read_event(row)?.event,
    })
}

fn told(error: RelayError) -> Failure {
    Failure::Told(error.into())
}

fn check(conn: &Connection, subscription: &str) -> Result<(), Failure> {
    let mut find = conn.prepare_cached(sql!("relay/subscription"))?;
    let found = find.query_row([subscription], |_| Ok(())).optional()?;
    found.ok_or_else(|| told(RelayError::NoSuchSubscription(subscription.to_owned())))
}

fn change_parked(
    conn: &Connection,
    subscription: &str,
    aggregate: Aggregate,
    named: Option<EventId>,
    verb: &ParkedVerb,
) -> Result<(), Failure> {
    check(conn, subscription)?;
    let (kind, id) = (&aggregate.kind, &aggregate.id);
    let mut find = conn.prepare_cached(sql!("relay/first_parked"))?;
    let first = find.query_row((subscription, kind, id), |row| {
        Ok((row.get::<_, i64>(0)?, row::job_id(row, 1)?, row.get::<_, u32>(2)?, row.get::<_, String>(3)?))
    });
    let Some((pos, JobId(event), deliveries, why)) = first.optional()? else {
        let subscription = subscription.to_owned();
        return Err(told(RelayError::NotParked { subscription, aggregate }));
    };
    if let Some(named) = named.filter(|named| named.0 != event) {
        let subscription = subscription.to_owned();
        return Err(told(RelayError::NotFirst { subscription, aggregate, event: named }));
    }
    match verb {
        ParkedVerb::Retry => {
            conn.prepare_cached(sql!("relay/edit"))?.execute((subscription, kind, id, pos, None::<&str>))?;
        }
        ParkedVerb::Skip => {
            let skipped = Undeliverable { event: EventId(event), deliveries, why, then: Undelivered::Skip };
            parked::give_up(conn, subscription, &skipped)?;
            conn.prepare_cached(sql!("relay/unpark_event"))?.execute((
                subscription,
                kind,
                id,
                event.as_bytes(),
            ))?;
            if conn.prepare_cached(sql!("relay/unpark_empty"))?.execute((subscription, kind, id))? == 1 {
                return Ok(());
            }
        }
        ParkedVerb::Edit(payload) => {
            conn.prepare_cached(sql!("relay/edit"))?.execute((subscription, kind, id, pos, Some(payload)))?;
        }
    }
    let now = (subscription, kind, id, 0, Some(now_ms()), None::<String>);
    conn.prepare_cached(sql!("relay/put_off"))?.execute(now)?;
    Ok(())
}

fn change_dead(conn: &Connection, subscription: &str, event: EventId, verb: DeadVerb) -> Result<(), Failure> {
    check(conn, subscription)?;
    let mut forget = conn.prepare_cached(sql!("relay/forget_dead"))?;
    let dead = forget.query_row((subscription, event.0.as_bytes()), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?))
    });
    let Some((pos, edited)) = dead.optional()? else {
        let subscription = subscription.to_owned();
        return Err(told(RelayError::NotDead { subscription, event }));
    };
    if verb == DeadVerb::Drop {
        return Ok(());
    }
    let mut find = conn.prepare_cached(sql!("event/event"))?;
    let Some(logged) = find.query_row([event.0.as_bytes()], read_event).optional()? else { return Ok(()) };
    unite(conn, subscription, &logged.event.aggregate, "a dead letter is retried")?;
    conn.prepare_cached(sql!("relay/park_again"))?.execute((subscription, pos, edited))?;
    Ok(())
}

fn unite(conn: &Connection, subscription: &str, of: &Aggregate, why: &str) -> Result<(), Failure> {
    conn.prepare_cached(sql!("relay/park_due_now"))?.execute((
        subscription,
        &of.kind,
        &of.id,
        now_ms(),
        why,
    ))?;
    Ok(())
}

fn again(conn: &Connection, subscription: &str, replay: &Replay) -> Result<u64, Failure> {
    const WHY: &str = "is published again";
    check(conn, subscription)?;
    let parked = match replay {
        Replay::Aggregate { aggregate, from } => {
            let Aggregate { kind, id } = aggregate;
            let mut find = conn.prepare_cached(sql!("relay/first_of_aggregate"))?;
            match find.query_row((kind, id), |row| row.get::<_, Option<i64>>(0))? {
                None => return Err(told(RelayError::NoEvents(aggregate.clone()))),
                Some(first) if first > *from => {
                    return Err(told(RelayError::BeforeRetention { aggregate: aggregate.clone(), first }));
                }
                Some(_) => {}
            }
            unite(conn, subscription, aggregate, WHY)?;
            let parked = conn.prepare_cached(sql!("relay/replay_aggregate"))?.execute((
                subscription,
                kind,
                id,
                from,
            ))?;
            conn.prepare_cached(sql!("relay/unpark_empty"))?.execute((subscription, kind, id))?;
            parked
        }
        Replay::Since(since) => {
            let since_ms = since.as_millisecond();
            let mut find = conn.prepare_cached(sql!("relay/replayed_aggregates"))?;
            let aggregates = find.query_map((subscription, since_ms), |row| {
                Ok(Aggregate { kind: row.get(0)?, id: row.get(1)? })
            })?;
            for aggregate in aggregates.collect::<rusqlite::Result<Vec<_>>>()? {
                unite(conn, subscription, &aggregate, WHY)?;
            }
            conn.prepare_cached(sql!("relay/replay_since"))?.execute((subscription, since_ms))?
        }
    };
    Ok(parked as u64)
}

fn prune(conn: &Connection, before_ms: i64) -> Result<Option<u64>, Failure> {
    let after: i64 = conn.prepare_cached(sql!("relay/prune_pos"))?.query_row((), |row| row.get(0))?;
    let portion = (before_ms, after, PORTION);
    let end: Option<i64> =
        conn.prepare_cached(sql!("relay/prune_end"))?.query_row(portion, |row| row.get(0))?;
    let pruned: Vec<Vec<u8>> = conn
        .prepare_cached(sql!("relay/prune_log"))?
        .query_map(portion, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut forget = conn.prepare_cached(sql!("relay/forget_work"))?;
    for event in &pruned {
        forget.execute([event])?;
    }
    let pruned = pruned.len() as u64;
    conn.prepare_cached(sql!("relay/move_prune_pos"))?.execute([end.unwrap_or(0)])?;
    Ok((pruned > 0 || end.is_some()).then_some(pruned))
}
