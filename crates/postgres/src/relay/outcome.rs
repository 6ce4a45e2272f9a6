//! Storage of the results of a page: positions, parked events, dead letters.

use std::collections::{BTreeMap, HashMap};

use milepost_core::event::{Failure, Outcome, Undelivered};
use milepost_core::ident::EventId;
use milepost_core::sql;
use serde_json::{Value, json};
use sqlx::Row;

use super::reader::SlotReader;
use super::reader::page::EventPosition;
use super::slot::Slot;
use crate::row::Decoded;
use crate::session::Query;

impl SlotReader {
    /// Returns the new position of each slot of the page.
    pub(super) fn reached(
        &self,
        outcome: &Outcome,
        places: &HashMap<EventId, &EventPosition>,
    ) -> BTreeMap<i16, Slot> {
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

    pub(super) async fn advance(&mut self, outcome: &Outcome) -> Decoded<()> {
        let places: HashMap<EventId, &EventPosition> = if outcome == &Outcome::default() {
            HashMap::new()
        } else {
            self.page.places.iter().map(|(id, place)| (*id, place)).collect()
        };
        let mut reached = self.reached(outcome, &places);
        for slot in &self.in_hand {
            if let (false, Some(held)) = (reached.contains_key(slot), self.slots.get(slot)) {
                reached.insert(*slot, held.clone());
            }
        }
        let query = advance(&self.publisher.subscription, &reached)
            .bind(array(outcome.failures.iter().filter_map(|failure| failed(failure, &places))))
            .bind(array(outcome.behind.iter().filter_map(|id| Some(placed(*id, places.get(id)?)))))
            .bind(array(
                outcome.failures.iter().filter_map(|failure| given_up(failure, places.get(&failure.event))),
            ))
            .bind(self.epoch.clone());
        let row = self.store.inner.hot.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
        let moved: Vec<i16> = row.try_get("moved")?;
        let ns: Vec<i64> = row.try_get("moved_ns")?;
        let moved: HashMap<i16, i64> = moved.into_iter().zip(ns).collect();
        if !moved.is_empty() {
            // A transaction without changes has no id, so its floor does not cover others.
            self.drawn = row.try_get("floor")?;
        }
        for (slot, state) in reached {
            match moved.get(&slot) {
                Some(&n) => self.slots.insert(slot, Slot { n, ..state }),
                None => self.slots.remove(&slot),
            };
        }
        Ok(())
    }
}

/// Returns the statement that moves slots; the caller binds failed, waiting and dead-lettered events, and the epoch.
fn advance(subscription: &str, reached: &BTreeMap<i16, Slot>) -> Query {
    let slots = || reached.values();
    sqlx::query(sql!("relay/advance_slots"))
        .bind(subscription.to_owned())
        .bind(reached.keys().copied().collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.token).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.n).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.seen.clone()).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.floor).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.upto.clone())).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.floor)).collect::<Vec<_>>())
        .bind(slots().map(|slot| slot.pos).collect::<Vec<_>>())
}

/// Returns a JSON array; `None` if it is empty.
fn array(values: impl Iterator<Item = Value>) -> Option<String> {
    let values: Vec<Value> = values.collect();
    (!values.is_empty()).then(|| Value::Array(values).to_string())
}

fn placed(id: EventId, place: &EventPosition) -> Value {
    json!({ "slot": place.slot, "pos": place.pos, "id": id.0, "type": place.aggregate.kind, "aggregate": place.aggregate.id })
}

/// Returns the JSON of a failed event that parks its aggregate.
fn failed(failure: &Failure, places: &HashMap<EventId, &EventPosition>) -> Option<Value> {
    let wait_ms = wait_ms(failure.then)?;
    let mut value = placed(failure.event, places.get(&failure.event)?);
    value["deliveries"] = json!(failure.deliveries);
    value["wait_ms"] = json!(wait_ms);
    value["why"] = json!(failure.why);
    Some(value)
}

/// Returns how long the aggregate waits; inner `None`: until an operator acts; outer `None`: it does not wait.
pub(super) fn wait_ms(then: Undelivered) -> Option<Option<u64>> {
    match then {
        Undelivered::Retry(wait) => Some(Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))),
        Undelivered::Halt => Some(None),
        Undelivered::Skip | Undelivered::DeadLetter => None,
    }
}

/// Returns the JSON of a skipped or dead-lettered event.
fn given_up(failure: &Failure, place: Option<&&EventPosition>) -> Option<Value> {
    let mut value = abandoned(failure)?;
    let place = place?;
    value["slot"] = json!(place.slot);
    value["pos"] = json!(place.pos);
    Some(value)
}

/// Returns the JSON of a skipped or dead-lettered event, without its place.
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
