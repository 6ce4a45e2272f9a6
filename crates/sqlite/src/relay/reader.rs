//! The publisher's reader of the log, page by page.

use std::collections::HashMap;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Holding, Outcome, Page, PageSize, Publisher, RelayError, Undelivered};
use milepost_core::ident::EventId;
use milepost_core::port::{LogReader, StoreResult};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::clock::now_ms;
use crate::clock_back;
use crate::command::Hint;
use crate::error::Failure;
use crate::event::read_event;
use crate::relay::parked;
use crate::store::SqliteStore;

/// Reads the log by position.
pub(super) struct FileReader {
    store: SqliteStore,
    publisher: Publisher,
    held: Option<Held>,
    page: ReadPage,
    /// Whether the position has moved since it was last stored.
    in_hand: bool,
    stands_aside: bool,
}

/// The token and the position with which the subscription is owned.
#[derive(Clone, Copy)]
struct Held {
    token: i64,
    pos: i64,
}

/// The page in progress.
#[derive(Clone, Default)]
struct ReadPage {
    /// The position after the page, once every event in it has been handled.
    end: Option<i64>,
    /// The events returned to the publisher, with their positions and aggregates.
    places: Vec<(EventId, i64, Aggregate)>,
}

/// The result of a balance check.
struct Found {
    holding: Holding,
    held: Option<Held>,
}

impl FileReader {
    pub(super) fn new(store: SqliteStore, publisher: Publisher) -> Self {
        Self { store, publisher, held: None, page: ReadPage::default(), in_hand: false, stands_aside: false }
    }
}

#[async_trait]
impl LogReader for FileReader {
    fn stand_aside(&mut self, aside: bool) {
        self.stands_aside = aside;
    }

    async fn balance(&mut self) -> StoreResult<Holding> {
        self.page = ReadPage::default();
        self.in_hand = false;
        let (publisher, known, aside) = (self.publisher.clone(), self.held.take(), self.stands_aside);
        let look = move |tx: &Transaction<'_>| look_around(tx, &publisher, known, aside);
        let found = self.store.write("balance", Hint::NONE, look).await?;
        self.held = found.held;
        Ok(found.holding)
    }

    async fn page(&mut self, size: PageSize) -> StoreResult<Page> {
        self.page = ReadPage::default();
        let Some(held) = self.held else { return Ok(Page::default()) };
        let publisher = self.publisher.clone();
        let (page, read) =
            self.store.read("page", move |conn| read(conn, &publisher, held.pos, size)).await?;
        self.page = read;
        Ok(page)
    }

    fn pass(&mut self) -> bool {
        let page = std::mem::take(&mut self.page);
        if let (Some(held), Some(end)) = (&mut self.held, page.end) {
            held.pos = end;
            self.in_hand = true;
        }
        self.in_hand
    }

    async fn commit(&mut self, outcome: &Outcome) -> StoreResult<()> {
        let page = std::mem::take(&mut self.page);
        if page.end.is_none() && !std::mem::take(&mut self.in_hand) {
            return Ok(());
        }
        let Some(held) = self.held.take() else { return Ok(()) };
        let end = page.end.unwrap_or(held.pos);
        let places: HashMap<EventId, (i64, Aggregate)> =
            page.places.into_iter().map(|(id, pos, aggregate)| (id, (pos, aggregate))).collect();
        let untried = outcome.untried.iter().filter_map(|id| places.get(id)).map(|(pos, _)| pos - 1);
        let pos = untried.min().unwrap_or(end).max(held.pos);
        let (subscription, outcome) = (self.publisher.subscription.clone(), outcome.clone());
        let moved = self.store.write("advance", Hint::NONE, move |tx| {
            let moved = (&subscription, held.token, pos, now_ms());
            if tx.prepare_cached(sql!("relay/advance"))?.execute(moved)? == 0 {
                return Ok(false);
            }
            park(tx, &subscription, &outcome, &places)?;
            Ok(true)
        });
        self.held = moved.await?.then_some(Held { pos, ..held });
        Ok(())
    }
}

pub(super) fn lease_until_ms(publisher: &Publisher) -> i64 {
    now_ms().saturating_add(i64::try_from(publisher.lease.as_millis()).unwrap_or(i64::MAX))
}

fn look_around(
    conn: &Connection,
    publisher: &Publisher,
    known: Option<Held>,
    stands_aside: bool,
) -> Result<Found, Failure> {
    clock_back::follow_publishers(conn)?;
    let (name, id) = (&publisher.subscription, publisher.id.0.as_bytes().to_vec());
    let (now, until_ms) = (now_ms(), lease_until_ms(publisher));
    let mut find = conn.prepare_cached(sql!("relay/subscription"))?;
    let stands = find.query_row([name], |row| {
        let owner: Option<Vec<u8>> = row.get(1)?;
        let lease_until_ms: Option<i64> = row.get(3)?;
        Ok((
            row.get::<_, Option<String>>(0)?,
            owner,
            Held { token: row.get(2)?, pos: row.get(4)? },
            lease_until_ms,
        ))
    });
    let Some((paused, owner, stands, lease_until_ms)) = stands.optional()? else {
        return Err(Failure::Told(RelayError::NoSuchSubscription(name.clone()).into()));
    };
    let attending = (&id, name, &publisher.label, now, until_ms, stands_aside);
    conn.prepare_cached(sql!("relay/register_publisher"))?.execute(attending)?;
    conn.prepare_cached(sql!("relay/forget_silent"))?.execute((name, now))?;
    if paused.is_some() {
        conn.prepare_cached(sql!("relay/give_back"))?.execute([&id])?;
        return Ok(Found { holding: Holding { paused, ..Holding::default() }, held: None });
    }
    if stands_aside && has_willing(conn, name)? {
        conn.prepare_cached(sql!("relay/give_back"))?.execute([&id])?;
        return Ok(Found { holding: Holding::default(), held: None });
    }
    if owner.as_ref() == Some(&id) {
        conn.prepare_cached(sql!("relay/renew"))?.execute((&id, until_ms))?;
        let held = known.filter(|held| held.token == stands.token).unwrap_or(stands);
        let parked = if known.is_some() { Vec::new() } else { parked::of(conn, name)? };
        let holding = Holding { slots: 1, parked, ..Holding::default() };
        return Ok(Found { holding, held: Some(held) });
    }
    if owner.is_some() && lease_until_ms.is_some_and(|until| until >= now) {
        return Ok(Found { holding: Holding::default(), held: None });
    }
    conn.prepare_cached(sql!("relay/take"))?.execute((name, &id, now, until_ms))?;
    let taken_over = usize::from(owner.is_some());
    let holding = Holding { slots: 1, taken_over, parked: parked::of(conn, name)?, paused: None };
    Ok(Found { holding, held: Some(Held { token: stands.token + 1, ..stands }) })
}

fn has_willing(conn: &Connection, subscription: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached(sql!("relay/has_willing"))?.query_row([subscription], |row| row.get(0))
}

fn read(
    conn: &Connection,
    publisher: &Publisher,
    after: i64,
    size: PageSize,
) -> Result<(Page, ReadPage), Failure> {
    let (mut page, mut read, mut bytes, mut count) = (Page::default(), ReadPage::default(), 0, 0);
    let mut find = conn.prepare_cached(sql!("relay/page"))?;
    let mut rows = find.query((after, i64::try_from(size.events_max).unwrap_or(i64::MAX)))?;
    while let Some(row) = rows.next()? {
        if bytes >= size.bytes_max {
            page.more = true;
            break;
        }
        let logged = read_event(row)?;
        count += 1;
        read.end = Some(logged.pos);
        if publisher.filter.has(&logged.event) {
            bytes += logged.event.payload.get().len();
            read.places.push((logged.event.id, logged.pos, logged.event.aggregate.clone()));
            page.events.push(logged.event);
        } else {
            page.left_out.add(&logged.event.aggregate.kind, &logged.event.event_type);
        }
    }
    page.more |= count >= size.events_max;
    Ok((page, read))
}

/// Parks failed events and those behind them, and stores dead-lettered events.
fn park(
    conn: &Connection,
    subscription: &str,
    outcome: &Outcome,
    places: &HashMap<EventId, (i64, Aggregate)>,
) -> Result<(), Failure> {
    let now = now_ms();
    for failure in &outcome.failures {
        let due_ms = match failure.then {
            Undelivered::Skip | Undelivered::DeadLetter => {
                parked::give_up(conn, subscription, failure)?;
                continue;
            }
            Undelivered::Retry(wait) => Some(parked::after(now, wait)),
            Undelivered::Halt => None,
        };
        let Some((pos, of)) = places.get(&failure.event) else { continue };
        let aggregate = (subscription, &of.kind, &of.id, now, failure.deliveries, due_ms, &failure.why);
        conn.prepare_cached(sql!("relay/park_aggregate"))?.execute(aggregate)?;
        park_event(conn, subscription, of, *pos, failure.event)?;
    }
    for id in &outcome.behind {
        let Some((pos, of)) = places.get(id) else { continue };
        // An aggregate that has been drained since is parked again, due immediately.
        let aggregate =
            (subscription, &of.kind, &of.id, now, 0, Some(now), "waits behind an event that failed");
        conn.prepare_cached(sql!("relay/park_aggregate"))?.execute(aggregate)?;
        park_event(conn, subscription, of, *pos, *id)?;
    }
    Ok(())
}

fn park_event(
    conn: &Connection,
    subscription: &str,
    of: &Aggregate,
    pos: i64,
    id: EventId,
) -> Result<(), Failure> {
    let event = (subscription, &of.kind, &of.id, pos, id.0.as_bytes());
    conn.prepare_cached(sql!("relay/park_event"))?.execute(event)?;
    Ok(())
}
