//! Pages of the log: the events of each slot, and the slot's position after them.

use std::collections::{BTreeMap, HashMap};

use milepost_core::event::{Aggregate, Event, LeftOut, Page, PageSize, SubscriptionFilter};
use milepost_core::ident::EventId;
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::SlotReader;
use crate::event::read_event_with;
use crate::row::Decoded;
use crate::session::Query;

/// A page whose events are being published.
#[derive(Debug, Default)]
pub(in crate::relay) struct ReadPage {
    /// The position of each slot once every event has been answered.
    pub(in crate::relay) ends: BTreeMap<i16, End>,
    /// The places of the events in the page.
    pub(in crate::relay) places: Vec<(EventId, EventPosition)>,
}

#[derive(Debug)]
pub(in crate::relay) struct End {
    pub(in crate::relay) pos: i64,
    /// Whether the window has been read to its end.
    pub(in crate::relay) closes: bool,
}

/// A row with its slot and position; a slot without events has one row without a position.
type Placed<'r> = (i16, Option<i64>, &'r PgRow);

/// Large or compressed payloads, by slot and position.
type Large = HashMap<(i16, i64), String>;

/// The position of an event in the log.
#[derive(Clone, Debug)]
pub(in crate::relay) struct EventPosition {
    pub(in crate::relay) slot: i16,
    pub(in crate::relay) pos: i64,
    pub(in crate::relay) aggregate: Aggregate,
}

impl SlotReader {
    pub(in crate::relay) async fn read_page(&mut self, size: PageSize) -> Decoded<Page> {
        let shares = self.shares(size.events_max);
        let rows = self.store.inner.hot.rows(self.read(size, &shares)).await?;
        if rows.is_empty() {
            // The epoch has ended: the next balance reads the positions from the database.
            self.slots.clear();
            return Ok(Page::default());
        }
        let mut placed = rows.iter().map(|row| Ok((row.try_get("slot")?, row.try_get("pos")?, row)));
        let mut rows: Vec<(i16, Option<i64>, &PgRow)> = placed.by_ref().collect::<Decoded<_>>()?;
        // SQL does not guarantee this order across slots.
        rows.sort_by_key(|(slot, pos, _)| (*slot, *pos));
        let large = self.large(&rows, size).await?;
        let (events, left_out) = self.take_in(&rows, large)?;
        self.end_slots(&rows, &shares);
        Ok(Page { more: self.slots.values().any(|slot| slot.full), events, left_out })
    }

    /// Returns how many events to read from each slot: slots with a backlog get most of the page.
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
        sqlx::query(sql!("relay/page"))
            .bind(self.slots.keys().copied().collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.seen.clone()).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.window.as_ref().map(|w| w.upto.clone())).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.floor).collect::<Vec<_>>())
            .bind(slots().map(|slot| slot.pos).collect::<Vec<_>>())
            .bind(shares.to_vec())
            .bind(some(&self.publisher.filter.aggregate_types))
            .bind(some(&self.publisher.filter.event_types))
            .bind(small_bytes(size))
            .bind(self.epoch.clone())
    }

    /// Opens windows and collects the events. `large`: payloads that were fetched separately; a slot ends before the first one that is missing.
    fn take_in(&mut self, rows: &[Placed<'_>], mut large: Large) -> Decoded<(Vec<Event>, LeftOut)> {
        let (mut events, mut left_out) = (Vec::with_capacity(rows.len()), LeftOut::default());
        let mut cut = None;
        for &(slot, pos, row) in rows {
            let Some(held) = self.slots.get_mut(&slot) else { continue };
            if held.window.is_none() {
                held.open(row.try_get("upto")?, self.drawn);
            }
            let Some(pos) = pos.filter(|_| cut != Some(slot)) else { continue };
            if is_wanted(&self.publisher.filter, row)? {
                let payload = row.try_get::<Option<String>, _>("payload")?;
                let Some(payload) = payload.or_else(|| large.remove(&(slot, pos))) else {
                    cut = Some(slot);
                    continue;
                };
                let event = read_event_with(row, payload)?;
                let place = EventPosition { slot, pos, aggregate: event.aggregate.clone() };
                self.page.places.push((event.id, place));
                events.push(event);
            } else {
                left_out.add(row.try_get("aggregate_type")?, row.try_get("event_type")?);
            }
            self.page.ends.insert(slot, End { pos, closes: true });
        }
        Ok((events, left_out))
    }

    /// Records which slots have more events, and closes the windows of slots without events.
    fn end_slots(&mut self, rows: &[Placed<'_>], shares: &[i64]) {
        let mut last: BTreeMap<i16, (i64, Option<i64>)> = BTreeMap::new();
        for (slot, pos, _) in rows {
            let (count, last) = last.entry(*slot).or_default();
            *count += i64::from(pos.is_some());
            *last = *pos;
        }
        for ((slot, held), share) in self.slots.iter_mut().zip(shares) {
            let (count, last) = last.get(slot).copied().unwrap_or_default();
            match self.page.ends.get_mut(slot) {
                Some(end) => {
                    held.full = count == *share || Some(end.pos) != last;
                    end.closes = !held.full;
                }
                None => {
                    held.full = count > 0;
                    if !held.full {
                        // The window is empty. Its end is not stored, because reading an empty window again is cheap.
                        held.close();
                    }
                }
            }
        }
    }

    /// Fetches the payloads of wanted events that the page lacks, for as many events as fit into it. How many do is known only when
    /// they are read: they may be compressed.
    async fn large(&self, rows: &[Placed<'_>], size: PageSize) -> Decoded<Large> {
        let (mut slots, mut positions, mut bytes) = (Vec::new(), Vec::new(), 0);
        for &(slot, pos, row) in rows {
            let (Some(pos), Some(has)) = (pos, row.try_get::<Option<i32>, _>("bytes")?) else { continue };
            let is_there = row.try_get::<Option<&str>, _>("payload")?.is_some();
            if is_there || !is_wanted(&self.publisher.filter, row)? {
                continue;
            }
            if bytes >= size.bytes_max {
                break;
            }
            bytes += has.unsigned_abs() as usize;
            slots.push(slot);
            positions.push(pos);
        }
        if slots.is_empty() {
            return Ok(Large::new());
        }
        let query =
            sqlx::query(sql!("relay/payloads")).bind(slots).bind(positions).bind(size.bytes_max as i64);
        let payloads = self.store.inner.hot.rows(query).await?;
        payloads
            .iter()
            .map(|row| Ok(((row.try_get("slot")?, row.try_get("pos")?), row.try_get("payload")?)))
            .collect()
    }
}

/// Returns the stored size above which payloads are fetched separately, which bounds the memory of a page.
fn small_bytes(size: PageSize) -> i64 {
    (2 * size.bytes_max / size.events_max.max(1)).max(1_024) as i64
}

fn is_wanted(filter: &SubscriptionFilter, row: &PgRow) -> Decoded<bool> {
    Ok(filter.has_type(row.try_get("aggregate_type")?, row.try_get("event_type")?))
}
