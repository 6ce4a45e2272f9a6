//! Reader of the log of a publisher's slots, page by page.

pub(super) mod page;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Holding, Outcome, Page, PageSize, Publisher};
use milepost_core::port::{LogReader, StoreResult};
use milepost_core::sql;
use sqlx::Row;

use self::page::ReadPage;
use super::error::relay_error;
use super::slot::Slot;
use crate::row::Decoded;
use crate::store::PostgresStore;

/// Reads by windows between snapshots; `docs/adr/0017-reading-the-log.md` explains how, and why no event is missed.
#[derive(Debug)]
pub(super) struct SlotReader {
    pub(super) store: PostgresStore,
    pub(super) publisher: Publisher,
    /// The epoch of the positions in `slots`; `None` before the first [`LogReader::balance`].
    pub(super) epoch: Option<String>,
    pub(super) slots: BTreeMap<i16, Slot>,
    /// The floor for windows that are opened next.
    pub(super) drawn: i64,
    pub(super) page: ReadPage,
    /// Slots that have moved since their positions were last written.
    pub(super) in_hand: BTreeSet<i16>,
    stands_aside: bool,
}

impl SlotReader {
    pub(super) fn new(store: PostgresStore, publisher: Publisher) -> Self {
        let (slots, in_hand, page) = (BTreeMap::new(), BTreeSet::new(), ReadPage::default());
        Self { store, publisher, epoch: None, slots, drawn: 0, page, in_hand, stands_aside: false }
    }
}

#[async_trait]
impl LogReader for SlotReader {
    fn stand_aside(&mut self, aside: bool) {
        self.stands_aside = aside;
    }

    async fn balance(&mut self) -> StoreResult<Holding> {
        self.page = ReadPage::default();
        self.in_hand.clear();
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
        let read = self.read_page(size).await;
        read.map_err(|e| {
            self.slots.clear();
            self.store.fail("page", e)
        })
    }

    fn pass(&mut self) -> bool {
        let reached = self.reached(&Outcome::default(), &HashMap::new());
        self.page = ReadPage::default();
        self.in_hand.extend(reached.keys());
        self.slots.extend(reached);
        !self.in_hand.is_empty()
    }

    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()> {
        if self.page.ends.is_empty() && self.in_hand.is_empty() {
            return Ok(());
        }
        let advanced = self.advance(outcome).await;
        self.page = ReadPage::default();
        self.in_hand.clear();
        advanced.map_err(|e| {
            // The commit may or may not have happened: read the positions again.
            self.slots.clear();
            self.store.fail("advance_slots", e)
        })
    }
}

impl SlotReader {
    async fn look_around(&mut self) -> Decoded<Holding> {
        self.store.follow_publisher_clock().await?;
        let query = sqlx::query(sql!("relay/hold_slots"))
            .bind(self.publisher.subscription.clone())
            .bind(self.publisher.id.0)
            .bind(self.publisher.label.clone())
            .bind(lease_ms(&self.publisher))
            .bind(self.stands_aside);
        let rows = self.store.inner.hot.rows(query).await?;
        let (mut held, mut fresh, mut taken_over) = (BTreeMap::new(), Vec::new(), 0);
        if let Some(row) = rows.first() {
            self.enter_epoch(row.try_get("epoch")?);
        }
        for row in &rows {
            let (slot, state) = Slot::of_row(row)?;
            self.drawn = row.try_get("drawn")?;
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
            let query = sqlx::query(sql!("relay/pause_of")).bind(self.publisher.subscription.clone());
            holding.paused = self.store.inner.hot.row(query).await.and_then(crate::row::value)?;
        }
        Ok(holding)
    }

    /// Discards positions of an earlier epoch.
    fn enter_epoch(&mut self, epoch: String) {
        if self.epoch.as_ref().is_some_and(|last| *last != epoch) {
            tracing::warn!(
                subscription = self.publisher.subscription,
                "PostgreSQL was restarted, has crashed or failed over: publishing continues from the positions in the database"
            );
            self.slots.clear();
        }
        self.epoch = Some(epoch);
    }

    async fn parked_of(&self, slots: Vec<i16>) -> Decoded<Vec<Aggregate>> {
        let query =
            sqlx::query(sql!("relay/parked_of")).bind(self.publisher.subscription.clone()).bind(slots);
        let rows = self.store.inner.hot.rows(query).await?;
        rows.iter().map(|row| Ok(Aggregate { kind: row.try_get(0)?, id: row.try_get(1)? })).collect()
    }
}

pub(super) fn lease_ms(publisher: &Publisher) -> i64 {
    i64::try_from(publisher.lease.as_millis()).unwrap_or(i64::MAX)
}
