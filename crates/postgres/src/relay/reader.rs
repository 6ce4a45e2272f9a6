//! The log of a publisher's slots, page by page.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use milepost_core::event::{
    Aggregate, Failure, Holding, Outcome, Page, PageSize, Publisher, SubscriptionFilter, Undelivered,
};
use milepost_core::ident::EventId;
use milepost_core::port::{LogReader, StoreResult};
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::error::relay_error;
use super::slot::Slot;
use crate::event::read_event_with;
use crate::row::Decoded;
use crate::session::Query;
use crate::statement;
use crate::store::PostgresStore;

/// Reads by windows between snapshots; `docs/adr/0017-reading-the-log.md` says why, and why nothing is missed.
#[derive(Debug)]
pub(super) struct SlotReader {
    store: PostgresStore,
    publisher: Publisher,
    slots: BTreeMap<i16, Slot>,
    /// The floor of windows that are opened now.
    drawn: i64,
    page: ReadPage,
}

/// What is under way.
#[derive(Debug, Default)]
struct ReadPage {
    /// How far each slot is when everything has its answer.
    ends: BTreeMap<i16, End>,
    /// Where each event is that was handed out, with its aggregate.
    places: Vec<(EventId, Place)>,
}

#[derive(Debug)]
struct End {
    pos: i64,
    /// Whether the window is read to its end.
    closes: bool,
}

/// What a page has of a slot.
#[derive(Debug, Default)]
struct Read {
    rows: i64,
    /// Whether some of them have no room.
    is_cut: bool,
}

/// Large payloads, by slot and position.
type Large = HashMap<(i16, i64), String>;

/// Where an event is.
#[derive(Clone, Debug)]
struct Place {
    slot: i16,
    pos: i64,
    aggregate: Aggregate,
}

impl SlotReader {
    pub(super) fn new(store: PostgresStore, publisher: Publisher) -> Self {
        Self { store, publisher, slots: BTreeMap::new(), drawn: 0, page: ReadPage::default() }
    }

    /// How many events of each slot are read: those that had more get most of the page.
    fn shares(&self, events_max: usize) -> Vec<i64> {
        let full = self.slots.values().filter(|slot| slot.full).count();
        let others = self.slots.len() - full;
        let each = |events: usize, slots: usize| (events / slots.max(1)).max(1) as i64;
        let (of_full, of_others) = match (full, others) {
            (0, _) | (_, 0) => (each(events_max, self.slots.len()), each(events_max, self.slots.len())),
            _ => (each(events_max - events_max / 4, full), each(events_max / 4, others)),
        };
        self.slots.values().map(|slot| if slot.full { of_full } else { of_others }).collect()
    }

    fn read(&self, size: PageSize, shares: &[i64]) -> Query {
        let slots = || self.slots.values();
        let some = |names: &[String]| (!names.is_empty()).then(|| names.to_vec());
        sqlx::query(statement::RELAY_PAGE)
            .bind(self.slots.keys().copied().collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.seen.clone()).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.upto.clone())).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.floor).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.pos).collect::<Vec<_>>())
            .bind(shares.to_vec())
            .bind(some(&self.publisher.filter.aggregate_types))
            .bind(some(&self.publisher.filter.event_types))
            .bind(small_bytes(size))
    }

    /// Takes the rows of a page in: where each slot ends in it, and the events. `large`: payloads that did not come with the rows; a
    /// slot ends before the first one that is missing.
    fn take_in(&mut self, rows: &[PgRow], shares: &[i64], mut large: Large) -> Decoded<Page> {
        let mut events = Vec::with_capacity(rows.len());
        let mut read: HashMap<i16, Read> = HashMap::new();
        let mut now: Option<String> = None;
        for row in rows {
            let (slot, pos) = (row.try_get("slot")?, row.try_get("pos")?);
            let of_slot = match read.entry(slot) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    self.open(slot, row.try_get("upto")?, &mut now);
                    new.insert(Read::default())
                }
            };
            of_slot.rows += 1;
            if of_slot.is_cut {
                continue;
            }
            if is_wanted(&self.publisher.filter, row)? {
                let Some(payload) =
                    row.try_get::<Option<String>, _>("payload")?.or_else(|| large.remove(&(slot, pos)))
                else {
                    of_slot.is_cut = true;
                    continue;
                };
                let event = read_event_with(row, payload)?;
                let place = Place { slot, pos, aggregate: event.aggregate.clone() };
                self.page.places.push((event.id, place));
                events.push(event);
            }
            self.page.ends.insert(slot, End { pos, closes: true });
        }
        self.end_slots(&read, shares, now.as_deref());
        Ok(Page { more: self.slots.values().any(|slot| slot.full), events })
    }

    /// Opens a slot's window. `now`: the snapshot of this page, where a window was opened.
    fn open(&mut self, slot: i16, upto: &str, now: &mut Option<String>) {
        if let Some(held) = self.slots.get_mut(&slot) {
            if held.window.is_none() && now.is_none() {
                *now = Some(upto.to_owned());
            }
            held.open(upto, self.drawn);
        }
    }

    /// Says of each slot whether there is more, and closes the windows of those in which there is nothing.
    fn end_slots(&mut self, read: &HashMap<i16, Read>, shares: &[i64], now: Option<&str>) {
        for ((&slot, held), &share) in self.slots.iter_mut().zip(shares) {
            let of_slot = read.get(&slot);
            held.full = of_slot.is_some_and(|read| read.is_cut || read.rows == share);
            if of_slot.is_none() {
                // Nothing is in it up to there. That need not be written down: whoever reads it again finds nothing again.
                if let Some(now) = now {
                    held.open(now, self.drawn);
                }
                held.close();
            } else if let Some(end) = self.page.ends.get_mut(&slot) {
                end.closes = !held.full;
            }
        }
    }

    /// Payloads that did not come with the rows, of as many events as have room.
    async fn large(&self, rows: &[PgRow], size: PageSize) -> Decoded<Large> {
        let (mut slots, mut positions, mut bytes) = (Vec::new(), Vec::new(), 0);
        for row in rows {
            if row.try_get::<i32, _>("bytes")? as i64 <= small_bytes(size)
                || !is_wanted(&self.publisher.filter, row)?
            {
                continue;
            }
            if bytes >= size.bytes_max {
                break;
            }
            bytes += row.try_get::<i32, _>("bytes")?.unsigned_abs() as usize;
            slots.push(row.try_get::<i16, _>("slot")?);
            positions.push(row.try_get::<i64, _>("pos")?);
        }
        if slots.is_empty() {
            return Ok(Large::new());
        }
        let query = sqlx::query(statement::RELAY_PAYLOADS).bind(slots).bind(positions);
        let payloads = self.store.inner.hot.rows(query).await?;
        payloads
            .iter()
            .map(|row| Ok(((row.try_get("slot")?, row.try_get("pos")?), row.try_get("payload")?)))
            .collect()
    }

    /// Where each slot of the page is now.
    fn reached(&self, outcome: &Outcome, places: &HashMap<EventId, &Place>) -> BTreeMap<i16, Slot> {
        let mut untried: HashMap<i16, i64> = HashMap::new();
        for place in outcome.untried.iter().filter_map(|id| places.get(id)) {
            let first = untried.entry(place.slot).or_insert(place.pos);
            *first = place.pos.min(*first);
        }
        let reached = self.page.ends.iter().filter_map(|(slot, end)| {
            let mut held = self.slots.get(slot)?.clone();
            match untried.get(slot) {
                Some(first) => held.pos = held.pos.max(first - 1),
                None if end.closes => held.close(),
                None => held.pos = end.pos,
            }
            Some((*slot, held))
        });
        reached.collect()
    }

    async fn advance(&mut self, outcome: &Outcome) -> Decoded<()> {
        let places: HashMap<EventId, &Place> = if outcome == &Outcome::default() {
            HashMap::new()
        } else {
            self.page.places.iter().map(|(id, place)| (*id, place)).collect()
        };
        let reached = self.reached(outcome, &places);
        let query = advance(&self.publisher.subscription, &reached)
            .bind(array(outcome.failures.iter().filter_map(|failure| failed(failure, &places))))
            .bind(array(outcome.behind.iter().filter_map(|id| Some(placed(*id, places.get(id)?)))))
            .bind(array(
                outcome.failures.iter().filter_map(|failure| given_up(failure, places.get(&failure.event))),
            ));
        let row = self.store.inner.hot.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
        let moved: HashSet<i16> = row.try_get::<Vec<i16>, _>("moved")?.into_iter().collect();
        if !moved.is_empty() {
            // A transaction that changed nothing has no id, and says nothing of others.
            self.drawn = row.try_get("floor")?;
        }
        for (slot, state) in reached {
            if moved.contains(&slot) {
                self.slots.insert(slot, state);
            } else {
                self.slots.remove(&slot);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl LogReader for SlotReader {
    async fn balance(&mut self) -> StoreResult<Holding> {
        self.page = ReadPage::default();
        let held = self.look_around().await;
        held.map_err(|e| {
            self.slots.clear();
            relay_error(&self.store.inner.place, "hold_slots", &self.publisher.subscription, e)
        })
    }

    async fn page(&mut self, size: PageSize) -> StoreResult<Page> {
        self.page = ReadPage::default();
        if self.slots.is_empty() {
            return Ok(Page::default());
        }
        let shares = self.shares(size.events_max);
        let read = self.read_page(size, &shares).await;
        read.map_err(|e| {
            self.slots.clear();
            self.store.fail("page", e)
        })
    }

    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()> {
        if self.page.ends.is_empty() {
            return Ok(());
        }
        let advanced = self.advance(outcome).await;
        self.page = ReadPage::default();
        advanced.map_err(|e| {
            // Nobody knows whether it was written: what is in the database counts.
            self.slots.clear();
            self.store.fail("advance_slots", e)
        })
    }
}

impl SlotReader {
    async fn read_page(&mut self, size: PageSize, shares: &[i64]) -> Decoded<Page> {
        let mut rows = self.store.inner.hot.rows(self.read(size, shares)).await?;
        let large = self.large(&rows, size).await?;
        // As they come already, though nobody has promised it.
        let mut places = rows.iter().map(|row| Ok((row.try_get("slot")?, row.try_get("pos")?)));
        let places: Vec<(i16, i64)> = places.by_ref().collect::<Decoded<_>>()?;
        if !places.is_sorted() {
            let mut order: Vec<(i16, i64, PgRow)> =
                places.into_iter().zip(rows).map(|((slot, pos), row)| (slot, pos, row)).collect();
            order.sort_by_key(|(slot, pos, _)| (*slot, *pos));
            rows = order.into_iter().map(|(_, _, row)| row).collect();
        }
        self.take_in(&rows, shares, large)
    }

    async fn look_around(&mut self) -> Decoded<Holding> {
        let query = sqlx::query(statement::RELAY_HOLD_SLOTS)
            .bind(self.publisher.subscription.clone())
            .bind(self.publisher.id.0)
            .bind(self.publisher.label.clone())
            .bind(lease_ms(&self.publisher));
        let rows = self.store.inner.hot.rows(query).await?;
        let (mut held, mut fresh, mut taken_over) = (BTreeMap::new(), Vec::new(), 0);
        for row in &rows {
            let (slot, state) = Slot::of_row(row)?;
            taken_over += usize::from(row.try_get::<bool, _>("taken_over")?);
            match self.slots.remove(&slot) {
                Some(known) if known.token == state.token => held.insert(slot, known),
                _ => {
                    fresh.push(slot);
                    held.insert(slot, state)
                }
            };
        }
        self.slots = held;
        let mut holding = Holding { slots: self.slots.len(), taken_over, ..Holding::default() };
        if !fresh.is_empty() {
            holding.parked = self.parked_of(fresh).await?;
        }
        if rows.is_empty() {
            let query = sqlx::query(statement::RELAY_PAUSE_OF).bind(self.publisher.subscription.clone());
            holding.paused = self.store.inner.hot.row(query).await.and_then(crate::row::value)?;
        }
        Ok(holding)
    }

    async fn parked_of(&self, slots: Vec<i16>) -> Decoded<Vec<Aggregate>> {
        let query =
            sqlx::query(statement::RELAY_PARKED_OF).bind(self.publisher.subscription.clone()).bind(slots);
        let rows = self.store.inner.hot.rows(query).await?;
        rows.iter().map(|row| Ok(Aggregate { kind: row.try_get(0)?, id: row.try_get(1)? })).collect()
    }
}

pub(super) fn lease_ms(publisher: &Publisher) -> i64 {
    i64::try_from(publisher.lease.as_millis()).unwrap_or(i64::MAX)
}

/// Payloads that take more than this come one by one, so that a page of such does not take too much.
fn small_bytes(size: PageSize) -> i64 {
    (2 * size.bytes_max / size.events_max.max(1)).max(1_024) as i64
}

fn is_wanted(filter: &SubscriptionFilter, row: &PgRow) -> Decoded<bool> {
    let has = |names: &[String], column: &str| -> Decoded<bool> {
        Ok(names.is_empty() || names.iter().any(|name| row.try_get(column).is_ok_and(|it: &str| it == name)))
    };
    Ok(has(&filter.aggregate_types, "aggregate_type")? && has(&filter.event_types, "event_type")?)
}

/// What moves slots to where they are; what is parked and given up is still to be bound.
fn advance(subscription: &str, reached: &BTreeMap<i16, Slot>) -> Query {
    let slots = || reached.values();
    sqlx::query(statement::RELAY_ADVANCE_SLOTS)
        .bind(subscription.to_owned())
        .bind(reached.keys().copied().collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.token).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.seen.clone()).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.floor).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.upto.clone())).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.floor)).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.pos).collect::<Vec<_>>())
}

/// A JSON array, if there is anything in it.
fn array(values: impl Iterator<Item = Value>) -> Option<String> {
    let values: Vec<Value> = values.collect();
    (!values.is_empty()).then(|| Value::Array(values).to_string())
}

fn placed(id: EventId, place: &Place) -> Value {
    json!({ "slot": place.slot, "pos": place.pos, "id": id.0, "type": place.aggregate.kind, "aggregate": place.aggregate.id })
}

/// An event that parks its aggregate.
fn failed(failure: &Failure, places: &HashMap<EventId, &Place>) -> Option<Value> {
    let wait_ms = wait_ms(failure.then)?;
    let mut value = placed(failure.event, places.get(&failure.event)?);
    value["deliveries"] = json!(failure.deliveries);
    value["wait_ms"] = json!(wait_ms);
    value["why"] = json!(failure.why);
    Some(value)
}

/// How long the aggregate waits; inner `None`: for a person; outer `None`: it does not wait.
pub(super) fn wait_ms(then: Undelivered) -> Option<Option<u64>> {
    match then {
        Undelivered::Retry(wait) => Some(Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))),
        Undelivered::Halt => Some(None),
        Undelivered::Skip | Undelivered::DeadLetter => None,
    }
}

/// An event that is given up.
fn given_up(failure: &Failure, place: Option<&&Place>) -> Option<Value> {
    let mut value = abandoned(failure)?;
    let place = place?;
    value["slot"] = json!(place.slot);
    value["pos"] = json!(place.pos);
    Some(value)
}

/// An event that is given up, without its place.
pub(super) fn abandoned(failure: &Failure) -> Option<Value> {
    let skipped = match failure.then {
        Undelivered::Skip => true,
        Undelivered::DeadLetter => false,
        Undelivered::Retry(_) | Undelivered::Halt => return None,
    };
    Some(
        json!({ "id": failure.event.0, "deliveries": failure.deliveries, "why": failure.why, "skipped": skipped }),
    )
}
